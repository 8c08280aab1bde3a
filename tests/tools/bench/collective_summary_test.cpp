#include "bench/collective/collective_summary.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe::bench;

namespace {

/// Two of ours, at either speed, and one of each peer's.
const std::vector<collective_sample> samples{{10, 100, 150.0, 300.0},
                                             {20, 200, 260.0, 800.0},
                                             {.probe = 12, .memcpy = 90, .gloo = 1560.0},
                                             {.probe = 21, .memcpy = 210, .open_mpi = 1300.0}};

}  // namespace

TEST_CASE("a summary compares what was measured within a sample, and other processes by medians") {
  auto of = collective_summary::of(samples);
  CHECK(of.own.count == 2);
  CHECK(of.memcpy.count == 4);
  CHECK(of.own_over_memcpy.smallest == 1.3);
  CHECK(of.own_over_memcpy.largest == 1.5);
  CHECK(of.gloo_over_own == 6);
  CHECK(of.open_mpi_over_own == 1300 / of.own.median);
}

TEST_CASE("what was not measured is null, not zero") {
  auto line = collective_summary::of(faster_than(15, samples)).json();
  CHECK(line.at("own_us").at("n") == 1);
  CHECK(line.at("open_mpi_us").is_null());
  CHECK(line.at("open_mpi_over_own").is_null());
  CHECK(collective_summary::of({}).json().at("own_us").is_null());
}

TEST_CASE("samples are parted by what the probe took") {
  CHECK(faster_than(15, samples).size() == 2);
  CHECK(slower_than(15, samples).size() == 2);
}

TEST_CASE("a sample survives the way through JSON, with what is missing in it") {
  auto read = collective_sample::from(samples[1].json());
  CHECK(read.own == 260.0);
  CHECK_FALSE(read.gloo);
  CHECK_FALSE(read.open_mpi);
}
