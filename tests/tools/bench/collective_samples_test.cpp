#include "bench/collective/collective_samples.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

using namespace troupe::bench;

namespace {

/// Two of ours, at either speed, and one of each peer's.
const collective_samples samples{{{"probe_us", 10}, {"memcpy_us", 100}, {"own_us", 150}, {"foreign_us", 300}},
                                 {{"probe_us", 20}, {"memcpy_us", 200}, {"own_us", 260}, {"foreign_us", 800}},
                                 {{"probe_us", 12}, {"memcpy_us", 90}, {"gloo_us", 1560}},
                                 {{"probe_us", 21}, {"memcpy_us", 210}, {"open_mpi_us", 1300}}};

}  // namespace

TEST_CASE("a summary compares what was measured within a sample, and other processes by medians") {
  auto line = summary_of(samples);
  CHECK(line.at("own_us").at("n") == 2);
  CHECK(line.at("memcpy_us").at("n") == 4);
  CHECK(line.at("own_over_memcpy").at("min") == 1.3);
  CHECK(line.at("own_over_memcpy").at("max") == 1.5);
  CHECK(line.at("gloo_over_own") == 6);
  CHECK(line.at("open_mpi_over_own") == 1300 / line.at("own_us").at("median").get<double>());
}

TEST_CASE("what was not measured is null, not zero") {
  auto line = summary_of(part_at(15, samples).fast);
  CHECK(line.at("own_us").at("n") == 1);
  CHECK(line.at("open_mpi_us").is_null());
  CHECK(line.at("open_mpi_over_own").is_null());
  CHECK(summary_of({}).at("own_us").is_null());
}

TEST_CASE("samples are parted by what the probe took") {
  auto parted = part_at(15, samples);
  CHECK(parted.fast.size() == 2);
  CHECK(parted.slow.size() == 2);
}

TEST_CASE("a sample survives the way through JSON, with what is missing in it") {
  auto read = nlohmann::json::parse(nlohmann::json(samples[1]).dump()).get<collective_sample>();
  CHECK(read.at("own_us") == 260.0);
  CHECK_FALSE(read.contains("gloo_us"));
  CHECK_FALSE(read.contains("open_mpi_us"));
}

TEST_CASE("times of two speeds are parted in the widest gap between them") {
  auto threshold = speed_threshold({21, 10, 11, 10.5, 20, 22, 10, 21, 11});
  REQUIRE(threshold);
  CHECK((*threshold > 11 && *threshold < 20));
}

TEST_CASE("times that hardly differ are of one speed") {
  CHECK_FALSE(speed_threshold({10, 11, 12, 13, 10, 11, 12, 13, 10, 11}));
}

TEST_CASE("one late time among many is no speed of its own") {
  CHECK_FALSE(speed_threshold({10, 10, 11, 10, 11, 10, 11, 10, 11, 90}));
}

TEST_CASE("a few times say nothing of speeds") { CHECK_FALSE(speed_threshold({10, 20, 10, 20, 10, 20, 10})); }
