// device_state: what the plan's interpreter needs from the device.
#include "troupe/device/device_actor.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

/// Faults injected before an action of this kind.
fault_point fault_point_of(action_kind kind) {
  switch (kind) {
    case action_kind::forward:
      return fault_point::forward;
    case action_kind::backward:
    case action_kind::input_gradient:
      return fault_point::backward;
    case action_kind::weight_gradient:
      return fault_point::weight;
    case action_kind::reduce_gradient:
      return fault_point::reduce;
    case action_kind::apply:
      return fault_point::apply;
  }
  throw_invalid("fault_point_of", "a kind of action", std::to_string(static_cast<int>(kind)));
}

}  // namespace

const batch* device_state::samples() {
  auto found = batches_.find(step_);
  return found == batches_.end() ? nullptr : &found->second;
}

void device_state::send(const tensor_tag& tag, tensor value) {
  auto host = order_.job->host_of_stage(static_cast<int>(tag.stage));
  options_.out->send_tensor(host.rank, tag, std::move(value));
}

/// Gives up polling ownership if actions take long, so that the transport's thread receives meanwhile.
void device_state::on_begin(const action& op) {
  set_status(op.kind == action_kind::apply ? device_activity::applying : device_activity::computing);
  if (account_.is_busy()) waiter_.stop();
  account_.begin_action();
  options_.faults->at(fault_point_of(op.kind), step_);
}

void device_state::on_end(const action& op) { account_.end_action(op, call_->kind == call_kind::train); }

bool device_state::on_non_finite(const action& op, const std::string& what) {
  account_.add_non_finite("stage " + std::to_string(op.stage) + ": " + what);
  return order_.job->on_non_finite != non_finite_policy::stop;
}

}  // namespace troupe
