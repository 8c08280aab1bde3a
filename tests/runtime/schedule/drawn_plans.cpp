#include "runtime/schedule/drawn_plans.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace troupe::testing {

int drawn_below(int limit, std::mt19937& random) {
  return std::uniform_int_distribution<int>(0, limit - 1)(random);
}

std::size_t drawn_index(std::size_t size, std::mt19937& random) {
  return std::uniform_int_distribution<std::size_t>(0, size - 1)(random);
}

std::vector<schedule::edge> drawn_edges(int num_stages, std::mt19937& random) {
  if (drawn_below(4, random) == 0) return schedule::chain_edges(num_stages);
  std::vector<schedule::edge> edges;
  for (int stage = 0; stage + 1 < num_stages; ++stage) {
    int num_ports = 1 + drawn_below(2, random);
    for (int port = 0; port < num_ports; ++port) {
      int num_receivers = 1 + drawn_below(2, random);
      for (int i = 0; i < num_receivers; ++i) {
        // Neighbours more often than others, or most stages would take samples.
        bool is_next = drawn_below(2, random) == 0;
        int to = is_next ? stage + 1 : stage + 1 + drawn_below(num_stages - stage - 1, random);
        edges.push_back({stage, port, to, 0});
      }
    }
  }
  std::ranges::shuffle(edges, random);
  std::vector<int> num_inputs(static_cast<std::size_t>(num_stages), 0);
  for (auto& each : edges) each.input = num_inputs[static_cast<std::size_t>(each.to)]++;
  return edges;
}

std::vector<int> drawn_placement(int num_stages, int num_devices, std::mt19937& random) {
  std::vector<int> device_of_stage(static_cast<std::size_t>(num_stages));
  std::iota(device_of_stage.begin(), device_of_stage.end(), 0);
  for (auto& device : device_of_stage)
    if (device >= num_devices) device = drawn_below(num_devices, random);
  std::ranges::shuffle(device_of_stage, random);
  return device_of_stage;
}

std::vector<schedule::reduction> drawn_reductions(schedule_kind kind, int num_stages, std::mt19937& random) {
  std::vector<schedule::reduction> reductions;
  if (kind == schedule_kind::forward_only) return reductions;
  for (int count = drawn_below(3, random); count > 0; --count) {
    std::vector<int> members;
    for (int stage = 0; stage < num_stages; ++stage)
      if (drawn_below(2, random) == 0) members.push_back(stage);
    if (!members.empty()) reductions.emplace_back(members);
  }
  return reductions;
}

schedule_kind drawn_kind_of_any_placement(std::mt19937& random) {
  using enum schedule_kind;
  constexpr std::array kinds = {gpipe, one_f_one_b, forward_only, zb_h1, zb_h2, pipedream_2bw};
  return kinds[drawn_index(kinds.size(), random)];
}

plan_options drawn_chunks(int most_stages, int most_microbatches, std::mt19937& random) {
  using enum schedule_kind;
  constexpr std::array kinds = {interleaved_1f1b, zb_v, dualpipe_v, looped_bfs};
  plan_options options;
  options.kind = kinds[drawn_index(kinds.size(), random)];
  bool is_interleaved = options.kind == interleaved_1f1b;
  options.num_devices = 1 + drawn_below(std::max(1, most_stages / 2), random);
  int chunks = is_interleaved || options.kind == looped_bfs
                   ? 1 + drawn_below(most_stages / options.num_devices, random)
                   : 2;
  options.num_stages = chunks * options.num_devices;
  options.num_microbatches = 1 + drawn_below(most_microbatches, random);
  // Interleaved 1F1B takes multiples of the devices, DualPipeV as many as stages at least.
  if (is_interleaved) options.num_microbatches *= options.num_devices;
  if (options.kind == dualpipe_v) options.num_microbatches += options.num_stages;
  options.reductions = drawn_reductions(options.kind, options.num_stages, random);
  options.edges = drawn_edges(options.num_stages, random);
  return options;
}

plan_options drawn_options(int most_stages, int most_microbatches, std::mt19937& random) {
  if (most_stages > 1 && drawn_below(4, random) == 0)
    return drawn_chunks(most_stages, most_microbatches, random);
  plan_options options;
  options.kind = drawn_kind_of_any_placement(random);
  if (options.kind == schedule_kind::pipedream_2bw) options.flush_every = 1 + drawn_below(3, random);
  options.num_stages = 1 + drawn_below(most_stages, random);
  options.num_microbatches = 1 + drawn_below(most_microbatches, random);
  options.num_devices = 1 + drawn_below(options.num_stages, random);
  options.reductions = drawn_reductions(options.kind, options.num_stages, random);
  options.edges = drawn_edges(options.num_stages, random);
  if (drawn_below(2, random) == 0)
    options.device_of_stage = drawn_placement(options.num_stages, options.num_devices, random);
  return options;
}

schedule::edge add_edge(plan& changed, std::mt19937& random) {
  schedule::edge added;
  added.to = 1 + drawn_below(changed.num_stages - 1, random);
  added.from = drawn_below(added.to, random);
  int num_outputs = 0;
  for (const auto& each : changed.edges) {
    if (each.from == added.from) num_outputs = std::max(num_outputs, each.output + 1);
    if (each.to == added.to) added.input = std::max(added.input, each.input + 1);
  }
  added.output = drawn_below(num_outputs + 1, random);
  changed.edges.push_back(added);
  std::ranges::sort(changed.edges);
  return added;
}

}  // namespace troupe::testing
