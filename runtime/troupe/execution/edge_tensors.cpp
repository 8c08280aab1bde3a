#include "troupe/execution/edge_tensors.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "troupe/ops/elementwise.hpp"
#include "troupe/tensor/async/async_device_copy.hpp"
#include "troupe/tensor/memory_account.hpp"

namespace troupe::execution {
namespace {

void check_count(const char* what, int stage, std::size_t got, std::size_t expected, const char* ports) {
  if (got == expected) return;
  throw std::logic_error("[stage_program] expected " + std::to_string(expected) + " " + what + " of stage " +
                         std::to_string(stage) + ", one for each " + ports + ", got " + std::to_string(got));
}

}  // namespace

std::optional<std::vector<tensor>> edge_tensors::take_activations(const action& op) {
  auto edges = run_.graph().inputs_of(op.stage);
  std::vector<transport::tensor_tag> tags;
  for (const auto& each : edges)
    if (is_sent(each))
      tags.push_back(run_.tag(transport::tensor_role::activation, op.stage, op.microbatch,
                              static_cast<std::size_t>(each.input)));
  auto taken = run_.take(tags);
  if (!taken) return {};
  std::vector<tensor> inputs;
  auto next = taken->begin();
  for (const auto& each : edges) {
    inputs.push_back(is_sent(each) ? *next++ : inputs[first_port(each)]);
    forms_.agree_on(each, inputs.back(), op.microbatch);
    charge_here(inputs.back(), memory_use::activations);
  }
  return inputs;
}

/// The lowest input port of the receiver that gets the same tensor.
std::size_t edge_tensors::first_port(const schedule::edge& passed) const {
  auto is_same = [&passed](const schedule::edge& other) {
    return other.from == passed.from && other.output == passed.output;
  };
  auto edges = run_.graph().inputs_of(passed.to);
  return static_cast<std::size_t>(std::ranges::find_if(edges, is_same) - edges.begin());
}

void edge_tensors::send_outputs(const action& op, const std::vector<tensor>& outputs) {
  const auto& graph = run_.graph();
  if (graph.computes_loss(op.stage)) {
    bool predicts = run_.options().pass == pass_kind::predict;
    check_count("outputs", op.stage, outputs.size(), predicts ? 1 : 0, "prediction");
    if (predicts) run_.host().on_prediction(op, outputs.front());
    return;
  }
  check_count("outputs", op.stage, outputs.size(), static_cast<std::size_t>(graph.num_output_ports(op.stage)),
              "output port");
  for (const auto& each : graph.outputs_of(op.stage)) {
    const auto& sent = outputs[static_cast<std::size_t>(each.output)];
    forms_.agree_on(each, sent, op.microbatch);
    if (is_sent(each))
      run_.deliver(run_.tag(transport::tensor_role::activation, each.to, op.microbatch,
                            static_cast<std::size_t>(each.input)),
                   sent);
  }
}

std::optional<std::vector<tensor>> edge_tensors::take_output_gradients(const action& op) {
  std::vector<transport::tensor_tag> tags;
  for (std::size_t index = 0; index < run_.graph().outputs_of(op.stage).size(); ++index)
    tags.push_back(run_.tag(transport::tensor_role::gradient, op.stage, op.microbatch, index));
  auto gradients = run_.take(tags);
  if (!gradients) return {};
  for (auto& each : *gradients)
    if (is_undefined_gradient(each)) each = {};
  return gradients;
}

std::vector<tensor> edge_tensors::sums_by_port(int stage, std::vector<tensor> gradients) const {
  auto edges = run_.graph().outputs_of(stage);
  std::vector<tensor> sums(static_cast<std::size_t>(run_.graph().num_output_ports(stage)));
  auto place = run_.compute(stage).place();
  for (auto index = edges.size(); index-- > 0;) {
    auto& sum = sums[static_cast<std::size_t>(edges[index].output)];
    auto gradient = async_device_copy(std::exchange(gradients[index], {}), place);
    if (!sum.defined())
      sum = std::move(gradient);
    else if (gradient.defined())
      sum = add(sum, gradient);
  }
  return sums;
}

void edge_tensors::send_input_gradients(const action& op, const std::vector<tensor>& gradients) {
  auto edges = run_.graph().inputs_of(op.stage);
  check_count("input gradients", op.stage, gradients.size(), edges.size(), "input port");
  for (std::size_t port = 0; port < edges.size(); ++port) {
    forms_.require_form(edges[port], gradients[port], op.microbatch);
    auto sender_edges = run_.graph().outputs_of(edges[port].from);
    auto index = std::ranges::find(sender_edges, edges[port]) - sender_edges.begin();
    run_.deliver(run_.tag(transport::tensor_role::gradient, edges[port].from, op.microbatch,
                          static_cast<std::size_t>(index)),
                 gradients[port]);
  }
}

}  // namespace troupe::execution
