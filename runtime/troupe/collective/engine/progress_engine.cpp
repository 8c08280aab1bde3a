#include "troupe/collective/engine/progress_engine.hpp"

#include <poll.h>

#include <algorithm>
#include <ctime>

#include "troupe/collective/engine/backoff.hpp"
#include "troupe/posix/short_slices.hpp"

namespace troupe::collective {

struct progress_engine::place::entry {
  explicit entry(client& its) : polled(its) {}

  client& polled;
  std::atomic<bool> is_active = false;   ///< the client is in the engine's lists
  std::atomic<bool> is_removed = false;  ///< the client is not called any more
  std::mutex in_round;                   ///< held while it is called
};

progress_engine::place::place(progress_engine& engine, client& polled)
    : engine_(engine), entry_(std::make_shared<entry>(polled)) {}

progress_engine::place::~place() {
  entry_->is_removed = true;
  std::lock_guard running_round(entry_->in_round);
}

void progress_engine::place::request() {
  if (!entry_->is_active.exchange(true)) engine_.add(entry_);
  engine_.wake();
}

progress_engine::~progress_engine() {
  is_stopping_ = true;
  event_.set();
  if (thread_.joinable()) thread_.join();
}

void progress_engine::add(const std::shared_ptr<entry>& added) {
  std::lock_guard lock(adding_);
  added_.push_back(added);
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
}

/// The engine looks for work once more after it has stored is_sleeping_. So it sees what was stored before
/// this call, or is woken.
void progress_engine::wake() {
  if (is_sleeping_) event_.set();
}

bool progress_engine::take_added() {
  std::lock_guard lock(adding_);
  active_.insert(active_.end(), added_.begin(), added_.end());
  return !std::exchange(added_, {}).empty();
}

void progress_engine::work() {
  posix::request_short_slices();  // it shares a core with the program's computing
  backoff waiting;
  while (!is_stopping_) {
    if (take_added()) waiting.begin();
    if (run_round())
      waiting.made_progress();
    else if (!active_.empty() && waiting.next() == backoff::action::spin)
      pause_briefly();
    else  // without a yield: after it, it would keep the core for a whole time slice
      sleep();
  }
}

bool progress_engine::run_round() {
  bool moved = false;
  std::erase_if(active_, [&](const auto& each) {
    std::lock_guard lock(each->in_round);
    if (each->is_removed) return true;
    moved = each->polled.advance() || moved;
    if (!each->polled.is_idle()) return false;
    // Work that was added before this store is seen after it; later work adds the entry again.
    each->is_active = false;
    return each->polled.is_idle() || each->is_active.exchange(true);
  });
  return moved;
}

void progress_engine::sleep() {
  is_sleeping_ = true;
  wake_sources sources{.descriptors = {event_.fd()}};
  bool may_sleep = !take_added();
  for (const auto& each : active_) {
    std::lock_guard lock(each->in_round);
    if (!each->is_removed) may_sleep = each->polled.prepare_sleep(sources) && may_sleep;
  }
  if (may_sleep && !is_stopping_) {
    std::vector<pollfd> polled;
    for (int each : sources.descriptors) polled.push_back({each, POLLIN, 0});
    timespec time{sources.at_most.count() / 1'000'000, sources.at_most.count() % 1'000'000 * 1000};
    bool has_limit = sources.at_most != std::chrono::microseconds::max();
    ::ppoll(polled.data(), polled.size(), has_limit ? &time : nullptr, nullptr);
  }
  is_sleeping_ = false;
  event_.clear();
}

}  // namespace troupe::collective
