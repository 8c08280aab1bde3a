#include "troupe/device/input_waiter.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "troupe/trace/trace.hpp"

namespace troupe {

void input_waiter::begin_generation(std::uint64_t generation, int replica, std::vector<int> stages) {
  generation_ = generation;
  replica_ = replica;
  stages_ = std::move(stages);
  arrived_.begin_generation(generation);
}

void input_waiter::end_generation() {
  stop();
  stages_.clear();
}

void input_waiter::put(const tensor_tag& tag, tensor value) {
  account_scope charged(options_.account);
  charge_here(value, memory_use::messages);
  arrived_.put(tag, std::move(value));
}

bool input_waiter::take(int, const tensor_tag& tag, tensor& value) {
  bool is_input = tag.role == tensor_role::activation || tag.role == tensor_role::gradient ||
                  tag.role == tensor_role::contribution || tag.role == tensor_role::replica_gradients ||
                  tag.role == tensor_role::summed_gradients;
  auto is_mine = [&](int stage) { return std::cmp_equal(stage, tag.stage); };
  if (!is_input || !std::cmp_equal(replica_, tag.replica) || std::ranges::none_of(stages_, is_mine))
    return false;
  put(tag, std::move(value));
  has_come_ = true;
  return true;
}

bool input_waiter::receive() {
  if (options_.spin.count() == 0) return false;
  has_come_ = false;
  account_scope nobody({});  // polling receives for other devices too
  if (!options_.from->receive_for(*this, options_.spin)) wait_briefly();
  return has_come_;
}

/// Polls the mailbox for options_.spin, since the input is often in flight already and a wake-up costs more.
/// Yields the core to other threads meanwhile.
void input_waiter::wait_briefly() const {
  for (auto end = now_ns() + options_.spin.count(); !has_mail() && now_ns() < end;) std::this_thread::yield();
}

}  // namespace troupe
