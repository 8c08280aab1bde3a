#include "troupe/schedule/generators/order_builder.hpp"

namespace troupe::schedule {

void order_builder::forward(int stage) {
  append(stage, action_kind::forward, next_[{stage, action_kind::forward}]++);
}

void order_builder::backward(int stage) {
  ++next_[{stage, action_kind::weight_gradient}];
  append(stage, action_kind::backward, next_[{stage, action_kind::input_gradient}]++);
}

void order_builder::input_gradient(int stage) {
  append(stage, action_kind::input_gradient, next_[{stage, action_kind::input_gradient}]++);
}

void order_builder::weight_gradient(int stage) {
  append(stage, action_kind::weight_gradient, next_[{stage, action_kind::weight_gradient}]++);
}

int order_builder::count(int stage, action_kind kind) const {
  auto found = next_.find({stage, kind});
  return found == next_.end() ? 0 : found->second;
}

void order_builder::append(int stage, action_kind kind, int microbatch) {
  if (microbatch < num_microbatches_) order_.push_back({stage, kind, microbatch});
}

}  // namespace troupe::schedule
