#pragma once
#include <optional>
#include <vector>

#include "troupe/execution/edge_forms.hpp"
#include "troupe/execution/plan_run.hpp"

namespace troupe::execution {

/// The tensors on the edges between stages: takes those that an action needs from the inbox, and sends what
/// it gave. A tensor that goes to several input ports of a stage is sent once, to the first. What a program
/// gives in another number or form than the edges have throws std::logic_error.
class edge_tensors {
 public:
  /// `run` outlives it.
  explicit edge_tensors(plan_run& run) : run_(run) {}

  void begin_step() { forms_.begin_step(); }
  /// All input tensors of an F, by port, or none if one is missing.
  std::optional<std::vector<tensor>> take_activations(const action& op);
  void send_outputs(const action& op, const std::vector<tensor>& outputs);
  /// The gradients that a B or I needs, one for each edge from the stage, or none if one is missing.
  std::optional<std::vector<tensor>> take_output_gradients(const action& op);
  /// Their sums for each output port, at the place of the stage, in the reverse order of
  /// stage_graph::outputs_of, as a backward pass adds them up: the last use of a tensor comes first.
  std::vector<tensor> sums_by_port(int stage, std::vector<tensor> gradients) const;
  void send_input_gradients(const action& op, const std::vector<tensor>& gradients);

 private:
  std::size_t first_port(const schedule::edge& passed) const;
  bool is_sent(const schedule::edge& passed) const {
    return first_port(passed) == static_cast<std::size_t>(passed.input);
  }

  plan_run& run_;
  edge_forms forms_;
};

}  // namespace troupe::execution
