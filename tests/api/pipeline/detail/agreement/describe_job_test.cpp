#include "troupe/pipeline/detail/agreement/describe_job.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/nn/linear.hpp"
#include "troupe/nn/sequential.hpp"

using namespace troupe;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("processes that would place cells or host devices otherwise are told apart by their descriptions") {
  job_options options;
  Pipeline pipeline(nn::Sequential(nn::Linear(2, 2), nn::Linear(2, 2)), options);
  auto training = make_plan({.num_stages = 2, .num_devices = 2});
  auto placed = mesh::place_cells(training);
  auto described = [&](const troupe::mesh::placement& with_placed, const mesh::hosting& home) {
    return detail::describe_job(pipeline, options, training, with_placed, home, "class");
  };
  auto two = spread(placed, mesh::view_of_world(2));
  auto first = described(placed, two);
  CHECK(first.hash() == described(placed, two).hash());
  auto other_home = described(placed, spread(placed, mesh::view_of_world(1)));
  CHECK(other_home.hash() != first.hash());
  auto difference = agreement::description_difference({{0, first}, {1, other_home}});
  REQUIRE(difference);
  CHECK_THAT(*difference, ContainsSubstring("placement"));
  troupe::mesh::placement swapped(placed.devices(), {{{.stage = 0}, {1}}, {{.stage = 1}, {0}}});
  CHECK(described(swapped, two).hash() != first.hash());
}
