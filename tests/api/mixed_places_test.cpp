#include "troupe/detail/start/mixed_places.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/error/errors.hpp"
#include "troupe/nn/activation.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/nn/tied_linear.hpp"

using namespace troupe;
using Catch::Matchers::ContainsSubstring;

namespace {

nn::Graph four_layers(bool is_tied) {
  if (!is_tied) return nn::Sequential(nn::Linear(4, 4), nn::Linear(4, 4), nn::Linear(4, 4), nn::Linear(4, 4));
  return nn::Sequential(nn::Linear(4, 4), nn::Linear(4, 4), nn::Linear(4, 4),
                        nn::TiedLinear(4, 4, "0.weight"));
}

const std::vector<stage_range> one_each{{0, 1}, {1, 2}, {2, 3}, {3, 4}};

mesh::placement placed(const std::string& devices, int num_replicas = 1) {
  return mesh::place_cells(make_plan({.num_stages = 4, .num_devices = 4, .num_replicas = num_replicas}),
                           mesh::device_places::from_string(devices));
}

}  // namespace

TEST_CASE("stages may be on CPUs and GPUs, and which layers are where is told") {
  for (const char* devices : {"cpu", "cuda:0", "cuda", "cuda:0..3"}) {
    CHECK_NOTHROW(detail::check_places(four_layers(true), one_each, placed(devices, 2)));
    CHECK(detail::text_of_places(one_each, placed(devices)).empty());
  }
  auto mixed = placed("cpu,cpu,cuda:0,cpu");
  CHECK_NOTHROW(detail::check_places(four_layers(true), one_each, mixed));
  CHECK(detail::text_of_places(one_each, mixed) == "0 to 1 cpu, 2 to 2 cuda, 3 to 3 cpu");
  CHECK(detail::text_of_places({{0, 3}, {3, 5}, {5, 6}, {6, 8}}, mixed) ==
        "0 to 4 cpu, 5 to 5 cuda, 6 to 7 cpu");
}

TEST_CASE("replicas of a stage and stages with a tied weight are on devices of one kind") {
  CHECK_THROWS_WITH(
      detail::check_places(four_layers(false), one_each, placed("cpu,cpu,cpu,cpu,cuda:0,cpu,cpu,cpu", 2)),
      ContainsSubstring("the replicas of stage 0 must have the same bits"));
  CHECK_NOTHROW(detail::check_places(four_layers(false), one_each, placed("cpu,cuda:0", 2)));
  CHECK_THROWS_WITH(detail::check_places(four_layers(true), one_each, placed("cpu,cuda:0")),
                    ContainsSubstring("stages 0 and 3, which share 0.weight,"));
  CHECK_NOTHROW(detail::check_places(four_layers(false), one_each, placed("cpu,cuda:0")));
}
