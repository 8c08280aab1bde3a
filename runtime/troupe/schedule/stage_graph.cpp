#include "troupe/schedule/stage_graph.hpp"

#include <algorithm>
#include <tuple>

#include "troupe/error/errors.hpp"

namespace troupe::schedule {
namespace {

std::string stage_name(int stage) { return "stage " + std::to_string(stage); }

void check_ends(const edge& checked, int num_stages) {
  auto refuse = [&checked](const std::string& problem) {
    throw bad_input("edge " + to_string(checked) + " " + problem);
  };
  for (int stage : {checked.from, checked.to})
    if (stage < 0 || stage >= num_stages)
      refuse("is at " + stage_name(stage) + ", but the stages are 0 to " + std::to_string(num_stages - 1));
  if (checked.output < 0 || checked.input < 0) refuse("has a negative port. Number ports from 0");
  if (checked.from >= checked.to)
    refuse("does not lead to a higher stage. Number the stages so that every edge does");
}

/// `by_sender`: stage after stage, and by output port.
void check_outputs(const std::vector<edge>& by_sender, int num_stages) {
  int sender = 0;  // the first stage of which no edge has been seen
  const edge* before = nullptr;
  for (const auto& each : by_sender) {
    if (each.from > sender) break;
    int next_port = before && before->from == each.from ? before->output + 1 : 0;
    if (each.output > next_port)
      throw bad_input("edge " + to_string(each) + " comes from output port " + std::to_string(each.output) +
                      " of " + stage_name(each.from) + ", but none comes from its output port " +
                      std::to_string(next_port) + ". Number the ports without gaps");
    sender = each.from + 1;
    before = &each;
  }
  if (sender < num_stages - 1)
    throw bad_input("no edge leads from " + stage_name(sender) + ", but only the last stage, " +
                    std::to_string(num_stages - 1) +
                    ", computes the loss. Give its output to a stage after it, or leave it out");
}

/// `by_receiver`: stage after stage, and by input port.
void check_inputs(const std::vector<edge>& by_receiver) {
  const edge* before = nullptr;
  for (const auto& each : by_receiver) {
    int next_port = before && before->to == each.to ? before->input + 1 : 0;
    if (each.input < next_port)
      throw bad_input("edges " + to_string(*before) + " and " + to_string(each) +
                      " lead to the same input port. Give each a port of its own");
    if (each.input > next_port)
      throw bad_input("edge " + to_string(each) + " leads to input port " + std::to_string(each.input) +
                      " of " + stage_name(each.to) + ", but none leads to its input port " +
                      std::to_string(next_port) + ". Number the ports without gaps");
    before = &each;
  }
}

/// [num_stages + 1]: where the edges of each stage begin in a list in which they come stage after stage.
std::vector<std::size_t> first_of_stages(const std::vector<edge>& sorted, int edge::*stage, int num_stages) {
  std::vector<std::size_t> first(static_cast<std::size_t>(num_stages) + 1, 0);
  for (const auto& each : sorted) ++first[static_cast<std::size_t>(each.*stage) + 1];
  for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  return first;
}

std::span<const edge> edges_of(int stage, const std::vector<edge>& edges,
                               const std::vector<std::size_t>& first) {
  auto at = static_cast<std::size_t>(stage);
  return std::span(edges).subspan(first[at], first[at + 1] - first[at]);
}

}  // namespace

std::string to_string(const edge& shown) {
  return std::to_string(shown.from) + "." + std::to_string(shown.output) + " -> " + std::to_string(shown.to) +
         "." + std::to_string(shown.input);
}

std::vector<edge> chain_edges(int num_stages) {
  std::vector<edge> edges;
  for (int stage = 1; stage < num_stages; ++stage) edges.push_back({.from = stage - 1, .to = stage});
  return edges;
}

// The lists are checked before anything is as large as num_stages, which may be a typing error.
stage_graph::stage_graph(int num_stages, std::vector<edge> edges) : by_sender_(std::move(edges)) {
  if (num_stages < 1)
    throw bad_input("a graph of " + std::to_string(num_stages) + " stages. Give at least 1");
  for (const auto& each : by_sender_) check_ends(each, num_stages);
  std::ranges::sort(by_sender_);
  by_receiver_ = by_sender_;
  std::ranges::stable_sort(by_receiver_, {},
                           [](const edge& each) { return std::tuple(each.to, each.input); });
  check_outputs(by_sender_, num_stages);
  check_inputs(by_receiver_);
  first_input_ = first_of_stages(by_receiver_, &edge::to, num_stages);
  first_output_ = first_of_stages(by_sender_, &edge::from, num_stages);
  distance_.assign(static_cast<std::size_t>(num_stages), 0);
  for (int stage = num_stages; stage-- > 0;)
    for (const auto& output : outputs_of(stage)) {
      auto& distance = distance_[static_cast<std::size_t>(stage)];
      distance = std::max(distance, distance_to_loss(output.to) + 1);
      longest_distance_ = std::max(longest_distance_, distance);
    }
}

std::span<const edge> stage_graph::inputs_of(int stage) const {
  return edges_of(stage, by_receiver_, first_input_);
}

std::span<const edge> stage_graph::outputs_of(int stage) const {
  return edges_of(stage, by_sender_, first_output_);
}

int stage_graph::num_output_ports(int stage) const {
  auto outputs = outputs_of(stage);
  return outputs.empty() ? 0 : outputs.back().output + 1;
}

}  // namespace troupe::schedule
