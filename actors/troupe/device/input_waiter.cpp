#include "troupe/device/input_waiter.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "troupe/program/stage_program.hpp"
#include "troupe/trace/trace.hpp"

namespace troupe::actors::devices {

void input_waiter::begin_generation(std::uint64_t generation, int replica, int slice,
                                    std::vector<int> stages) {
  generation_ = generation;
  replica_ = replica;
  slice_ = slice;
  stages_ = std::move(stages);
  arrived_.begin_generation(generation);
  take_from_replicas();  // what is of an earlier generation is dropped
}

void input_waiter::end_generation() {
  stop();
  stages_.clear();
}

void input_waiter::put(const transport::tensor_tag& tag, tensor value) {
  account_scope charged(options_.account);
  charge_here(value, memory_use::messages);
  arrived_.put(tag, std::move(value));
}

bool input_waiter::is_mine(const transport::tensor_tag& tag) const {
  auto is_stage = [&](int stage) { return std::cmp_equal(stage, tag.stage); };
  return std::cmp_equal(replica_, tag.replica) && std::cmp_equal(slice_, tag.slice) &&
         std::ranges::any_of(stages_, is_stage);
}

bool input_waiter::take(int, const transport::tensor_tag& tag, tensor& value) {
  if (!is_mine(tag) || !(is_input(tag.role) || tag.role == transport::tensor_role::replica_values))
    return false;
  put(tag, std::move(value));
  has_come_ = true;
  return true;
}

bool input_waiter::waits() const {
  if (is_interrupted()) return false;
  if (has_come_) return false;
  return seen_in_action_ ? options_.from_replicas->num_put() == *seen_in_action_ : !has_mail();
}

bool input_waiter::receive() {
  if (options_.spin.count() == 0) return false;
  has_come_ = false;
  account_scope nobody({});  // polling receives for other devices too
  if (!options_.from->receive_for(*this, options_.spin)) wait_briefly();
  return has_come_;
}

void input_waiter::receive_in_action() {
  constexpr auto fence_check_interval = std::chrono::milliseconds(1);
  auto& incoming = *options_.from_replicas;
  for (has_come_ = false; !has_come_; seen_in_action_.reset()) {
    auto seen = incoming.num_put();
    if (incoming.move_to(arrived_)) break;
    if (is_interrupted()) throw program::action_interrupted();
    seen_in_action_ = seen;
    account_scope nobody({});  // polling receives for other devices too
    bool has_polled = options_.spin.count() > 0 && options_.from->receive_for(*this, options_.spin);
    if (!has_polled) wait_briefly();
    if (!has_polled) incoming.wait_for_more(seen, fence_check_interval);
  }
}

/// Polls for options_.spin, since the input is often in flight already and a wake-up costs more. Yields the
/// core to other threads meanwhile.
void input_waiter::wait_briefly() const {
  for (auto end = trace::now_ns() + options_.spin.count(); waits() && trace::now_ns() < end;)
    std::this_thread::yield();
}

}  // namespace troupe::actors::devices
