// The part of device_state that waits for the tensors its next action needs.
#include <algorithm>
#include <thread>
#include <utility>

#include "troupe/device/device_actor.hpp"

namespace troupe {

bool device_state::take(int, const tensor_tag& tag, tensor& value) {
  bool is_input = tag.role == tensor_role::activation || tag.role == tensor_role::gradient ||
                  tag.role == tensor_role::share;
  auto mine = [&](const attached_stage& attached) { return std::cmp_equal(attached.stage, tag.stage); };
  if (!is_input || std::ranges::none_of(order_.stages, mine)) return false;
  inbox_.put(tag, std::move(value));
  input_came_ = true;
  return true;
}

bool device_state::waits() const { return !input_came_ && self_->mailbox().empty() && !is_fenced(); }

/// Whether there is a new input. If not, there is a message, or its mailbox is the place to wait.
bool device_state::receive_input() {
  if (options_.patience.count() == 0) return false;
  input_came_ = false;
  if (!options_.out->receive_for(*this, options_.patience)) wait_briefly();
  return input_came_;
}

/// What it waits for is often on its way already: looking for it a little longer is quicker than being woken
/// up. Others that want this core get it meanwhile.
void device_state::wait_briefly() {
  for (auto end = now_ns() + options_.patience.count(); self_->mailbox().empty() && now_ns() < end;)
    std::this_thread::yield();
}

}  // namespace troupe
