// device_state: what the plan's interpreter needs from the device.
#include "troupe/device/device_actor.hpp"

namespace troupe {
namespace {

/// An action longer than this gives up polling ownership; waking the transport's thread takes some
/// microseconds.
constexpr auto long_action = std::chrono::nanoseconds(std::chrono::microseconds(50)).count();

/// Faults injected before an action of this kind; none for weight gradients of their own.
std::optional<fault_point> fault_point_of(action_kind kind) {
  switch (kind) {
    case action_kind::forward:
      return fault_point::forward;
    case action_kind::backward:
    case action_kind::input_gradient:
      return fault_point::backward;
    case action_kind::reduce_gradient:
      return fault_point::reduce;
    case action_kind::apply:
      return fault_point::apply;
    case action_kind::weight_gradient:
      break;
  }
  return {};
}

}  // namespace

const batch* device_state::samples() {
  auto found = batches_.find(step_);
  return found == batches_.end() ? nullptr : &found->second;
}

void device_state::send(const tensor_tag& tag, tensor value) {
  options_.out->send_tensor(order_.job->rank_of_stage[tag.stage], tag, std::move(value));
}

/// Gives up polling ownership if actions take long, so that the transport's thread receives meanwhile.
void device_state::on_begin(const action& op) {
  set_status(op.kind == action_kind::apply ? device_activity::applying : device_activity::computing);
  if (is_busy_ || was_busy_) stop_receiving();
  action_begin_ns_ = now_ns();
  if (auto point = fault_point_of(op.kind)) options_.faults->at(*point, step_);
}

void device_state::on_end(const action& op) {
  if (op.kind == action_kind::apply)
    return clock_.record(trace_kind::apply, action_begin_ns_, generation_, step_, op.stage);
  auto end_ns = now_ns();
  was_busy_ = was_busy_ || end_ns - action_begin_ns_ > long_action;
  if (op.kind == action_kind::forward && call_->kind == call_kind::train) clock_.saved(op.stage);
  if (op.kind == action_kind::backward || op.kind == action_kind::weight_gradient) clock_.released(op.stage);
  clock_.add(op, action_begin_ns_, end_ns, generation_, step_);
}

bool device_state::on_non_finite(const action& op, const std::string& what) {
  if (non_finite_.empty()) non_finite_ = "stage " + std::to_string(op.stage) + ": " + what;
  return order_.job->on_non_finite != non_finite_policy::stop;
}

}  // namespace troupe
