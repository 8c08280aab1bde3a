#pragma once
#include <cstddef>
#include <random>
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe::testing {

/// Uniformly from 0 to limit - 1.
int drawn_below(int limit, std::mt19937& random);
std::size_t drawn_index(std::size_t size, std::mt19937& random);

/// Edges of a graph of `num_stages` stages: a chain now and then, else branches, edges that skip stages,
/// several tensors between two stages, tensors that go to several stages, several stages that take samples.
/// In any order.
std::vector<schedule::edge> drawn_edges(int num_stages, std::mt19937& random);

/// Every device has a stage.
std::vector<int> drawn_placement(int num_stages, int num_devices, std::mt19937& random);

/// Up to two, unless there are forwards only.
std::vector<schedule::reduction> drawn_reductions(schedule_kind kind, int num_stages, std::mt19937& random);

/// Of those whose stages may lie on any devices.
schedule_kind drawn_kind_of_any_placement(std::mt19937& random);

/// Of any kind, with at most `most_stages` stages on at most as many devices, and about at most
/// `most_microbatches` microbatches, more where the kind asks for more.
plan_options drawn_options(int most_stages, int most_microbatches, std::mt19937& random);

/// Adds an edge from a stage to a higher one, from an output port of its own or one that there is, and
/// returns it. The edges are still a graph, but the actions may wait in a circle. At least 2 stages.
schedule::edge add_edge(plan& changed, std::mt19937& random);

}  // namespace troupe::testing
