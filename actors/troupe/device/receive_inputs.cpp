// device_state: receives the tensors that its next action needs, by polling the transport or as messages.
#include <algorithm>
#include <thread>
#include <utility>

#include "troupe/device/device_actor.hpp"

namespace troupe {

bool device_state::take(int, const tensor_tag& tag, tensor& value) {
  bool is_input = tag.role == tensor_role::activation || tag.role == tensor_role::gradient ||
                  tag.role == tensor_role::contribution;
  auto mine = [&](const attached_stage& attached) { return std::cmp_equal(attached.stage, tag.stage); };
  if (!is_input || std::ranges::none_of(order_.stages, mine)) return false;
  inbox_.put(tag, std::move(value));
  input_came_ = true;
  return true;
}

bool device_state::waits() const { return !input_came_ && self_->mailbox().empty() && !is_fenced(); }

/// Waits for the missing input. True: a new input has arrived. False: there is a message, or the actor must
/// wait in its mailbox.
bool device_state::receive_input() {
  if (options_.spin.count() == 0) return false;
  input_came_ = false;
  if (!options_.out->receive_for(*this, options_.spin)) wait_briefly();
  return input_came_;
}

/// Polls the mailbox for options_.spin, since the input is often in flight already and a wake-up costs more.
/// Yields the core to other threads meanwhile.
void device_state::wait_briefly() {
  for (auto end = now_ns() + options_.spin.count(); self_->mailbox().empty() && now_ns() < end;)
    std::this_thread::yield();
}

}  // namespace troupe
