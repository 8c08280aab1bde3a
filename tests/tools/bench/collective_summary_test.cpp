#include "bench/collective/collective_summary.hpp"

#include <catch2/catch_test_macros.hpp>

#include "bench/collective/collective_aims.hpp"

using namespace troupe::bench;

namespace {

/// Two of ours, at either speed, and one of each peer's.
const std::vector<collective_sample> samples{{10, 100, 150.0, 300.0},
                                             {20, 200, 260.0, 800.0},
                                             {.probe = 12, .memcpy = 90, .gloo = 1560.0},
                                             {.probe = 21, .memcpy = 210, .open_mpi = 1300.0}};

std::vector<std::string> names(const std::vector<collective_aim>& aims) {
  std::vector<std::string> found;
  for (const auto& each : aims) found.push_back(each.what + (each.is_met() ? " met" : " missed"));
  return found;
}

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

TEST_CASE("the aims of all_reduce are judged where the sizes have some and the machine has the cores") {
  using list = std::vector<std::string>;
  auto of = collective_summary::of(samples);
  measured_group group{"all_reduce", "ucx", 4, 4};
  CHECK(names(aims_of(group, 1 << 20, of)) == list{"own/memcpy met", "Gloo/own met", "Open MPI/own met"});
  CHECK(aims_of(group, 64 << 20, of)[1].limit == 2);
  CHECK(names(aims_of(group, 8, of)) == list{"own/Open MPI met"});
  CHECK(aims_of(group, 8, of)[0].limit == 1.2);
  CHECK(aims_of(group, 4096, of).empty());
  CHECK(aims_of({"all_reduce", "ucx", 8, 4}, 8, of)[0].limit == 2);
  CHECK(aims_of({"all_reduce", "ucx", 8, 4}, 1 << 20, of).empty());
}

TEST_CASE("no verdict is given on few cores, for other operations or over other backends") {
  auto of = collective_summary::of(samples);
  for (const measured_group& group : {measured_group{"all_reduce", "ucx", 2, 2},
                                      {"all_reduce", "ucx", 6, 4},
                                      {"all_gather", "ucx", 4, 4},
                                      {"all_reduce", "gloo", 4, 4}}) {
    CHECK_FALSE(why_no_verdict(group).empty());
    CHECK(aims_of(group, 1 << 20, of).empty());
  }
}
