#include "troupe/transport/tensor_traffic.hpp"

#include <mutex>
#include <thread>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/transport/ucx_library.hpp"

namespace troupe {
namespace {

using clock = std::chrono::steady_clock;

/// So often a waiter polls before it looks at the clock and at anything else: a few microseconds.
constexpr int polls_between_looks = 64;
/// So long it keeps its core to itself; then it lets others have it between two looks.
constexpr auto selfish_poll = std::chrono::microseconds(4);

}  // namespace

tensor_traffic::tensor_traffic(const std::string& transports, const std::string& interface,
                               const surroundings& around)
    : around_(around), context_(make_ucx_context(transports, interface)) {}

std::vector<std::byte> tensor_traffic::begin_generation(std::uint64_t generation) {
  std::vector<std::byte> address;
  {
    std::lock_guard lock(mutex_);
    around_.gate.begin(generation);
    if (plane_) retired_.splice(retired_.end(), plane_->stop());
    plane_.reset();
    plane_.emplace(context_.get(), around_.settings, generation);
    address = plane_->address();
  }
  around_.thread.wake();
  bell_.wake();
  return address;
}

void tensor_traffic::connect(std::uint64_t generation, const std::map<int, node_address>& peers) {
  transfer_list released;
  {
    std::lock_guard lock(mutex_);
    around_.gate.open(generation);
    plane_.value().connect(generation, peers);
    released.swap(retired_);
  }
  around_.thread.wake();
  bell_.wake();
}

void tensor_traffic::send(int to_rank, const tensor_tag& tag, tensor&& value) {
  std::optional<authentication_code> body_code;
  if (around_.settings.verify_tensors) body_code = around_.settings.key.code(std::as_const(value).bytes());
  ucx_silence failures_are_reported_as_events;
  bool done = true;
  {
    std::lock_guard lock(mutex_);
    // The generation may have changed since.
    if (tag.generation == around_.gate.current() && around_.gate.is_open())
      done = plane_->send(to_rank, tag, body_code, std::move(value));
  }
  if (!done) (turn_.is_taken() ? bell_ : around_.thread).wake();
}

bool tensor_traffic::progress() {
  if (turn_.is_attended()) return false;
  bool worked = poll(thread_, 1);
  hand_over();
  return worked;
}

/// By the transport's thread, after it drove the plane: a waiter may have taken the turn since, found
/// nothing, and sleep for an event that this thread used up.
void tensor_traffic::hand_over() {
  if (turn_.is_taken()) bell_.wake();
}

/// Up to so many times, until something is done. Whether it was.
bool tensor_traffic::poll(receiver& by, int times) {
  by.arrivals.clear();
  mutex_.let_others_pass();
  bool worked = false;
  bool failed = false;
  mutex_.lock_as_poller();
  if (plane_) {
    plane_->prepare();
    while (!(worked = plane_->progress()) && --times > 0 && !mutex_.is_wanted()) {
    }
    plane_->take_arrivals(by.arrivals);
    failed = plane_->has_failures();
  }
  mutex_.unlock();
  for (auto& arrival : by.arrivals) deliver(arrival, by.waiter);
  if (failed) around_.thread.wake();
  return worked || !by.arrivals.empty();
}

void tensor_traffic::deliver(tensor_arrival& arrival, tensor_waiter* waiter) {
  auto& settings = around_.settings;
  const auto& tag = arrival.tag;
  if (tag.generation < around_.gate.current()) {
    ++settings.counters.stale_frames;
    return;
  }
  if (settings.verify_tensors && !is_authentic(arrival)) {
    ++settings.counters.bad_frames;
    return around_.distrust({arrival.from_rank, "it sent a tensor that is not authentic"});
  }
  settings.counters.count_received(arrival.value);
  if (!waiter || !waiter->take(arrival.from_rank, tag, arrival.value))
    around_.events.on_tensor(arrival.from_rank, tag, std::move(arrival.value));
}

bool tensor_traffic::is_authentic(const tensor_arrival& arrival) const {
  const auto& code = arrival.body_code;
  return code && same_code(*code, around_.settings.key.code(std::as_const(arrival.value).bytes()));
}

tensor_traffic::failures tensor_traffic::take_failures() {
  std::lock_guard lock(mutex_);
  if (!plane_) return {};
  return {around_.gate.current(), plane_->take_failures(), plane_->take_lost()};
}

int tensor_traffic::arm(bool& armed) {
  if (turn_.is_attended()) return -1;
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

bool tensor_traffic::receive_for(tensor_waiter& waiter, std::chrono::nanoseconds spin) {
  if (!turn_.take(waiter)) return false;
  if (turn_.must_wake_watcher()) around_.thread.wake();
  ucx_silence failures_are_reported_as_events;
  waiting_.waiter = &waiter;
  auto last_event = clock::now();
  while (waiter.waits()) {
    turn_.visit();
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

/// Sleeps until a tensor comes or somebody wakes it. The plane is armed after the sleep was announced, so
/// that a send that stays in progress either is seen by it or wakes this thread.
void tensor_traffic::sleep(const tensor_waiter& waiter, std::chrono::nanoseconds idle) {
  bell_.announce_sleep();
  bool armed = true;
  int descriptor = -1;
  {
    std::lock_guard lock(mutex_);
    if (plane_) {
      armed = !plane_->progress() && plane_->arm();
      descriptor = plane_->event_fd();
    }
  }
  if (!waiter.waits()) return bell_.cancel_sleep();
  turn_.begin_sleep();
  bell_.rest({descriptor, -1}, armed, idle);
  turn_.end_sleep();
}

void tensor_traffic::stop_receiving(const tensor_waiter& waiter) {
  if (!turn_.is_of(waiter)) return;
  turn_.give_back();
  around_.thread.wake();
}

}  // namespace troupe
