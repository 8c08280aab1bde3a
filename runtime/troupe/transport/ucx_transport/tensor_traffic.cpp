#include "troupe/transport/ucx_transport/tensor_traffic.hpp"

#include <mutex>
#include <thread>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/transport/tensor_event.hpp"
#include "troupe/ucx/ucx_library.hpp"

namespace troupe::transport {
namespace {

using clock = std::chrono::steady_clock;

/// Polls of a waiter between two checks of the clock and of tensor_waiter::waits: a few microseconds.
constexpr int polls_between_looks = 64;
/// A waiter polls this long without yielding its core; then it yields at each check.
constexpr auto selfish_poll = std::chrono::microseconds(4);

}  // namespace

tensor_traffic::tensor_traffic(const std::string& transports, const std::string& interface,
                               const dependencies& dependencies)
    : dependencies_(dependencies), context_(ucx::make_ucx_context(transports, interface)) {}

std::vector<std::byte> tensor_traffic::begin_generation(std::uint64_t generation) {
  std::vector<std::byte> address;
  {
    std::lock_guard lock(mutex_);
    dependencies_.gate.begin(generation);
    if (plane_) retired_.splice(retired_.end(), plane_->stop());
    plane_.reset();
    plane_.emplace(context_.get(), dependencies_.settings, shared_, generation);
    address = plane_->address();
  }
  dependencies_.thread.wake();
  waiter_wakeup_.wake();
  return address;
}

void tensor_traffic::connect(std::uint64_t generation, const std::map<int, process_address>& peers) {
  transfer_list released;
  {
    std::lock_guard lock(mutex_);
    dependencies_.gate.open(generation);
    plane_.value().connect(generation, peers);
    released.swap(retired_);
  }
  dependencies_.thread.wake();
  waiter_wakeup_.wake();
}

void tensor_traffic::send(int to_rank, const tensor_tag& tag, tensor&& value) {
  std::optional<messaging::authentication_code> body_code;
  if (dependencies_.settings.verify_tensors)
    body_code = dependencies_.settings.key.code(std::as_const(value).bytes());
  emit_tensor(trace::trace_kind::send, tag, to_rank, value.size_bytes());
  ucx::ucx_log_suppressor failures_are_reported_as_events;
  bool done = true;
  {
    std::lock_guard lock(mutex_);
    // The generation may have changed since the check above.
    if (tag.generation == dependencies_.gate.current() && dependencies_.gate.is_open())
      done = plane_->send(to_rank, tag, body_code, std::move(value));
  }
  if (!done) (ownership_.is_owned() ? waiter_wakeup_ : dependencies_.thread).wake();
}

bool tensor_traffic::progress() {
  if (ownership_.is_owner_polling()) return false;
  bool worked = poll(thread_, 1);
  hand_over();
  return worked;
}

/// Called by the transport's thread after it polled: a waiter may have become the owner meanwhile, found no
/// tensor, and sleep for an event that this thread has consumed. Wakes it.
void tensor_traffic::hand_over() {
  if (ownership_.is_owned()) waiter_wakeup_.wake();
}

/// Polls up to `times` times until something is done, and returns whether anything was done.
bool tensor_traffic::poll(receiver& looking, int times) {
  looking.arrivals.clear();
  mutex_.yield_to_waiters();
  bool worked = false;
  bool failed = false;
  mutex_.lock_as_poller();
  if (plane_) {
    plane_->prepare();
    while (!(worked = plane_->progress()) && --times > 0 && !mutex_.is_wanted()) {
    }
    plane_->take_arrivals(looking.arrivals);
    failed = plane_->has_failures();
  }
  mutex_.unlock();
  for (auto& arrival : looking.arrivals) deliver(arrival, looking.waiter);
  if (failed) dependencies_.thread.wake();
  return worked || !looking.arrivals.empty();
}

void tensor_traffic::deliver(tensor_arrival& arrival, tensor_waiter* waiter) {
  auto& settings = dependencies_.settings;
  const auto& tag = arrival.tag;
  if (tag.generation < dependencies_.gate.current()) {
    ++settings.counters.stale_frames;
    return;
  }
  if (settings.verify_tensors && !is_authentic(arrival)) {
    // Elements in memory of the sender may change as soon as the next generation begins.
    if (tag.generation < dependencies_.gate.current()) {
      ++settings.counters.stale_frames;
      return;
    }
    ++settings.counters.bad_frames;
    return dependencies_.on_bad_peer({arrival.from_rank, "it sent a tensor that is not authentic"});
  }
  auto* counted = arrival.counted ? arrival.counted : &settings.counters.with(arrival.from_rank);
  counted->count_received(arrival.value);
  emit_tensor(trace::trace_kind::receive, tag, arrival.from_rank, arrival.value.size_bytes());
  if (!waiter || !waiter->take(arrival.from_rank, tag, arrival.value))
    dependencies_.events.on_tensor(arrival.from_rank, tag, std::move(arrival.value));
}

bool tensor_traffic::is_authentic(const tensor_arrival& arrival) const {
  const auto& code = arrival.options.body_code;
  return code &&
         messaging::same_code(*code, dependencies_.settings.key.code(std::as_const(arrival.value).bytes()));
}

tensor_traffic::failures tensor_traffic::take_failures() {
  std::lock_guard lock(mutex_);
  if (!plane_) return {};
  return {dependencies_.gate.current(), plane_->take_failures(), plane_->take_lost()};
}

int tensor_traffic::arm(bool& armed) {
  if (ownership_.is_owner_polling()) return -1;
  int descriptor = -1;
  {
    std::lock_guard lock(mutex_);
    if (!plane_) return -1;
    armed = armed && !plane_->progress() && plane_->arm();
    descriptor = plane_->event_fd();
  }
  hand_over();
  return descriptor;
}

bool tensor_traffic::must_look_often() {
  if (!dependencies_.settings.delay) return false;
  std::lock_guard lock(mutex_);
  return plane_ && plane_->must_look_often();
}

bool tensor_traffic::receive_for(tensor_waiter& waiter, std::chrono::nanoseconds spin) {
  if (!ownership_.acquire(waiter)) return false;
  if (ownership_.must_wake_watcher()) dependencies_.thread.wake();
  ucx::ucx_log_suppressor failures_are_reported_as_events;
  waiting_.waiter = &waiter;
  auto last_event = clock::now();
  while (waiter.waits()) {
    ownership_.record_poll();
    if (poll(waiting_, polls_between_looks)) {
      last_event = clock::now();
      continue;
    }
    auto idle = clock::now() - last_event;
    if (idle >= spin)
      sleep(waiter, idle);
    else if (idle >= selfish_poll)
      std::this_thread::yield();
  }
  return true;
}

/// Sleeps until a tensor arrives or wake_receiver() is called. The plane is armed after the sleep was
/// announced, so that a send that stays in progress either keeps the plane from being armed or wakes this
/// thread.
void tensor_traffic::sleep(const tensor_waiter& waiter, std::chrono::nanoseconds idle) {
  waiter_wakeup_.announce_sleep();
  bool armed = true;
  int descriptor = -1;
  {
    std::lock_guard lock(mutex_);
    if (plane_) {
      armed = !plane_->progress() && plane_->arm();
      descriptor = plane_->event_fd();
    }
  }
  if (!waiter.waits()) return waiter_wakeup_.cancel_sleep();
  ownership_.begin_sleep();
  waiter_wakeup_.rest({descriptor, -1}, armed, idle,
                      must_look_often() ? std::chrono::milliseconds(1) : ucx::wakeup::max_sleep);
  ownership_.end_sleep();
}

void tensor_traffic::stop_receiving(const tensor_waiter& waiter) {
  if (!ownership_.is_owner(waiter)) return;
  ownership_.release();
  dependencies_.thread.wake();
}

}  // namespace troupe::transport
