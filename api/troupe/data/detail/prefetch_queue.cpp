#include "troupe/data/detail/prefetch_queue.hpp"

#include <algorithm>
#include <utility>

namespace troupe::detail {

prefetch_queue::prefetch_queue(read_function read, std::int64_t first, std::int64_t end,
                               const prefetch_options& options)
    : read_(std::move(read)), end_(end), options_(options), next_(first), next_begun_(first) {
  try {
    for (int i = 0; i < options_.num_workers; ++i) workers_.emplace_back([this] { work(); });
  } catch (...) {
    // Some threads may run already.
    stop();
    throw;
  }
}

prefetch_queue::~prefetch_queue() { stop(); }

void prefetch_queue::stop() {
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  may_begin_.notify_all();
  for (auto& worker : workers_) worker.join();
}

labelled_samples prefetch_queue::next() {
  outcome taken;
  if (workers_.empty()) {
    taken = read(next_);
    if (!taken.problem) ++next_;
  } else {
    std::unique_lock lock(mutex_);
    is_ready_.wait(lock, [this] { return ready_.contains(next_); });
    auto found = ready_.extract(next_);
    taken = std::move(found.mapped());
    if (!taken.problem) ++next_;
    is_stopping_ = is_stopping_ || taken.problem;
    may_begin_.notify_all();
  }
  if (taken.problem) std::rethrow_exception(taken.problem);
  return std::move(taken.batch);
}

prefetch_queue::outcome prefetch_queue::read(std::int64_t number) const {
  try {
    return {read_(number), nullptr};
  } catch (...) {
    return {{}, std::current_exception()};
  }
}

void prefetch_queue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    may_begin_.wait(lock,
                    [this] { return is_stopping_ || next_begun_ < std::min(end_, next_ + options_.depth); });
    if (is_stopping_) return;
    auto number = next_begun_++;
    lock.unlock();
    auto done = read(number);
    lock.lock();
    ready_.emplace(number, std::move(done));
    is_ready_.notify_one();
  }
}

}  // namespace troupe::detail
