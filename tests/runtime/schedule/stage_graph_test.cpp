#include "troupe/schedule/stage_graph.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <limits>
#include <random>

#include "runtime/schedule/drawn_plans.hpp"
#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::schedule::edge;
using troupe::schedule::stage_graph;
using edges = std::vector<edge>;

namespace {

edges listed(std::span<const edge> shown) { return {shown.begin(), shown.end()}; }

std::string refusal(int num_stages, const edges& list) {
  try {
    stage_graph(num_stages, list);
  } catch (const troupe::bad_input& problem) {
    return problem.what();
  }
  return "accepted";
}

/// The most edges on a way to the last stage, by going all ways.
int longest_way(int stage, const edges& list) {
  int longest = 0;
  for (const auto& each : list)
    if (each.from == stage) longest = std::max(longest, 1 + longest_way(each.to, list));
  return longest;
}

}  // namespace

TEST_CASE("a chain is a graph: the first stage takes the samples, the last computes the loss") {
  CHECK(troupe::schedule::chain_edges(1).empty());
  CHECK(troupe::schedule::chain_edges(0).empty());
  CHECK(troupe::schedule::chain_edges(3) == edges{{0, 0, 1, 0}, {1, 0, 2, 0}});
  stage_graph graph(3, troupe::schedule::chain_edges(3));
  CHECK(graph.num_stages() == 3);
  for (int stage = 0; stage < 3; ++stage) {
    CHECK(graph.takes_samples(stage) == (stage == 0));
    CHECK(graph.computes_loss(stage) == (stage == 2));
    CHECK(graph.distance_to_loss(stage) == 2 - stage);
    CHECK(graph.num_output_ports(stage) == (stage == 2 ? 0 : 1));
  }
  CHECK(stage_graph(1, {}).takes_samples(0));
  CHECK(stage_graph(1, {}).computes_loss(0));
}

TEST_CASE("edges of a graph come by port, in whatever order they were given") {
  // 0 gives its first output to 1 and 3, its second one to 3; 2 takes samples, too.
  edges list{{0, 0, 1, 0}, {0, 0, 3, 2}, {0, 1, 3, 0}, {1, 0, 3, 1}, {2, 0, 3, 3}};
  std::mt19937 random(7);
  for (int i = 0; i < 50; ++i) {
    std::ranges::shuffle(list, random);
    stage_graph graph(4, list);
    CHECK(listed(graph.inputs_of(3)) == edges{{0, 1, 3, 0}, {1, 0, 3, 1}, {0, 0, 3, 2}, {2, 0, 3, 3}});
    CHECK(listed(graph.outputs_of(0)) == edges{{0, 0, 1, 0}, {0, 0, 3, 2}, {0, 1, 3, 0}});
    CHECK(graph.num_output_ports(0) == 2);
    CHECK(graph.takes_samples(2));
    CHECK(!graph.takes_samples(1));
    CHECK(graph.distance_to_loss(0) == 2);
    CHECK(graph.distance_to_loss(2) == 1);
  }
}

TEST_CASE("distance is that of the longest way, in drawn graphs") {
  std::mt19937 random(11);
  for (int i = 0; i < 500; ++i) {
    int num_stages = 1 + i % 9;
    auto list = troupe::testing::drawn_edges(num_stages, random);
    stage_graph graph(num_stages, list);
    for (int stage = 0; stage < num_stages; ++stage) {
      CHECK(graph.distance_to_loss(stage) == longest_way(stage, list));
      for (std::size_t port = 0; port < graph.inputs_of(stage).size(); ++port)
        CHECK(graph.inputs_of(stage)[port].input == static_cast<int>(port));
    }
  }
}

TEST_CASE("an edge is written with stage and port of both ends") {
  CHECK(to_string(edge{1, 0, 3, 2}) == "1.0 -> 3.2");
}

TEST_CASE("what is no graph is refused by naming the edge or stage, and what to do") {
  CHECK(refusal(0, {}) == "a graph of 0 stages. Give at least 1");
  CHECK(refusal(2, {{0, 0, 2, 0}}) == "edge 0.0 -> 2.0 is at stage 2, but the stages are 0 to 1");
  CHECK(refusal(2, {{-1, 0, 1, 0}}) == "edge -1.0 -> 1.0 is at stage -1, but the stages are 0 to 1");
  CHECK(refusal(2, {{0, -1, 1, 0}}) == "edge 0.-1 -> 1.0 has a negative port. Number ports from 0");
  CHECK(refusal(2, {{0, 0, 1, -1}}) == "edge 0.0 -> 1.-1 has a negative port. Number ports from 0");
  CHECK(refusal(3, {{0, 0, 1, 0}, {1, 0, 2, 0}, {2, 0, 1, 1}}) ==
        "edge 2.0 -> 1.1 does not lead to a higher stage. Number the stages so that every edge does");
  CHECK_THAT(refusal(2, {{0, 0, 1, 0}, {1, 0, 1, 1}}), ContainsSubstring("1.0 -> 1.1 does not lead"));
  CHECK(refusal(2, {{0, 0, 1, 0}, {0, 1, 1, 0}}) ==
        "edges 0.0 -> 1.0 and 0.1 -> 1.0 lead to the same input port. Give each a port of its own");
  CHECK(refusal(2, {{0, 0, 1, 0}, {0, 0, 1, 2}}) ==
        "edge 0.0 -> 1.2 leads to input port 2 of stage 1, but none leads to its input port 1. Number the "
        "ports without gaps");
  CHECK(refusal(2, {{0, 0, 1, 0}, {0, 2, 1, 1}}) ==
        "edge 0.2 -> 1.1 comes from output port 2 of stage 0, but none comes from its output port 1. Number "
        "the ports without gaps");
  CHECK_THAT(refusal(2, {{0, 1, 1, 0}}), ContainsSubstring("none comes from its output port 0"));
  CHECK(refusal(3, {{0, 0, 2, 0}}) ==
        "no edge leads from stage 1, but only the last stage, 2, computes the loss. Give its output to a "
        "stage after it, or leave it out");
  CHECK_THAT(refusal(3, {{1, 0, 2, 0}}), ContainsSubstring("no edge leads from stage 0"));
  CHECK_THAT(refusal(2, {}), ContainsSubstring("no edge leads from stage 0"));
}

TEST_CASE("numbers as large as can be are refused without taking memory for them") {
  constexpr int largest = std::numeric_limits<int>::max();
  CHECK_THAT(refusal(largest, {{0, 0, 1, 0}}), ContainsSubstring("no edge leads from stage 1"));
  CHECK_THAT(refusal(2, {{0, largest, 1, 0}}), ContainsSubstring("none comes from its output port 0"));
  CHECK_THAT(refusal(2, {{0, 0, 1, largest}}), ContainsSubstring("none leads to its input port 0"));
}
