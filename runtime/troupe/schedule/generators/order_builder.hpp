#pragma once
#include <map>
#include <utility>
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe::schedule {

/// Writes the order of actions of a stage, or of a device with several stages. Each call appends the next
/// microbatch of its stage and kind, so that all of them ascend. Microbatches from `num_microbatches` on are
/// counted and left out.
class order_builder {
 public:
  explicit order_builder(int num_microbatches) : num_microbatches_(num_microbatches) {}

  void forward(int stage);
  void backward(int stage);
  void input_gradient(int stage);
  void weight_gradient(int stage);
  /// The A of an optimizer step but the last, whose A append_updates appends.
  void apply(int stage, int step) { order_.push_back({stage, action_kind::apply, step}); }

  /// Of a stage, so far.
  int forwards(int stage) const { return count(stage, action_kind::forward); }
  /// B counts as one.
  int input_gradients(int stage) const { return count(stage, action_kind::input_gradient); }
  int weight_gradients(int stage) const { return count(stage, action_kind::weight_gradient); }

  std::vector<action> take() { return std::move(order_); }

 private:
  int count(int stage, action_kind kind) const;
  void append(int stage, action_kind kind, int microbatch);

  int num_microbatches_;
  std::map<std::pair<int, action_kind>, int> next_;  // B counts as an I and a W
  std::vector<action> order_;
};

}  // namespace troupe::schedule
