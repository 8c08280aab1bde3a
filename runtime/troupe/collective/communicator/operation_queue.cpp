#include "troupe/collective/communicator/operation_queue.hpp"

#include <utility>

namespace troupe::collective {

bool is_brief(const call_signature& signature) {
  constexpr std::int64_t max_bytes = 4096;
  return signature.count * static_cast<std::int64_t>(size_bytes(signature.type)) <= max_bytes;
}

bool operation_queue::add(const std::shared_ptr<call>& added) {
  std::lock_guard lock(adding_);
  if (failure_) {
    end(*added, failure_);
    return false;
  }
  added_.push_back(added);
  has_added_.store(true, std::memory_order_relaxed);
  ++num_unfinished_;
  return true;
}

std::exception_ptr operation_queue::failure() {
  std::lock_guard lock(adding_);
  return failure_;
}

bool operation_queue::begin(const std::shared_ptr<call>& added) {
  if (has_added_.load(std::memory_order_relaxed)) take_added();
  auto& its_queue = queues_.queue_for(added->what);
  // Written by fail() only, which is called by one thread at a time with this.
  if (failure_ || !its_queue.calls.empty()) return false;
  its_queue.add(added);
  ++num_unfinished_;
  try {
    advance(its_queue);
  } catch (...) {
    fail(std::current_exception());
  }
  return true;
}

bool operation_queue::advance() {
  // A call that is missed here is seen in the next round.
  if (has_added_.load(std::memory_order_relaxed)) take_added();
  bool moved = false;
  backend_.progress();
  for (auto& each : queues_) moved = advance(each) || moved;
  return moved;
}

bool operation_queue::advance(call_queues::queue& pending) {
  if (pending.calls.empty()) return false;
  auto& first = *pending.calls.front();
  if (!first.running) {
    if (is_timed(first)) first.begun = call::clock::now();
    first.running.emplace(backend_.run(first.what, first.sequence));
  }
  if (!first.running->advance()) {
    if (!std::exchange(first.has_waited, true)) on_first_wait(first);
    return false;
  }
  auto done = std::move(pending.calls.front());
  pending.calls.pop_front();
  --num_unfinished_;
  end(*done, nullptr);
  return true;
}

/// Whether a call's whole duration is measured. Not of small ones: reading the clock is a large part of their
/// cost.
bool operation_queue::is_timed(const call& what) const {
  return hooks_.on_waited || !is_brief(what.what.signature);
}

/// Costs the call nothing, since it waits for other members.
void operation_queue::on_first_wait(call& first) {
  if (!is_timed(first)) first.begun = call::clock::now();
  hooks_.on_wait(first);
}

void operation_queue::take_added() {
  std::lock_guard lock(adding_);
  has_added_.store(false, std::memory_order_relaxed);
  for (auto& each : added_) {
    auto& queue = queues_.queue_for(each->what);
    queue.add(std::move(each));
  }
  added_.clear();
}

void operation_queue::end(call& last, std::exception_ptr error) {
  last.ended = is_timed(last) || last.is_delayed ? call::clock::now() : last.begun;
  bool had_begun = last.running.has_value();
  last.running.reset();
  last.error = std::move(error);
  if (had_begun) hooks_.on_end(last);
  last.finished = true;
  last.finished.notify_all();
  if (hooks_.after_end) hooks_.after_end();
}

std::shared_ptr<const call> operation_queue::find_late() {
  auto now = call::clock::now();
  for (const auto& each : queues_) {
    if (each.calls.empty() || !each.calls.front()->has_waited) continue;
    auto& first = *each.calls.front();
    first.is_delayed = true;
    if (now - first.begun > first.options.timeout) return each.calls.front();
  }
  return nullptr;
}

/// Aborts the backend before the calls end, since callers may use the tensors once their calls have ended.
void operation_queue::fail(const std::exception_ptr& cause) {
  if (failure_) return;
  for (auto& each : queues_)  // a call that fails in its first round is recorded too
    if (!each.calls.empty() && !std::exchange(each.calls.front()->has_waited, true))
      on_first_wait(*each.calls.front());
  auto error = hooks_.on_failure ? hooks_.on_failure(cause) : cause;
  {
    std::lock_guard lock(adding_);
    failure_ = error;
  }
  abort_backend(cause);
  take_added();
  for (auto& each : queues_)
    for (auto& unfinished : std::exchange(each.calls, {})) end(*unfinished, error);
  num_unfinished_ = 0;
}

void operation_queue::abort_backend(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const collective_error& failure) {
    backend_.abort(failure);
  } catch (const std::exception& failure) {
    backend_.abort(collective_error(collective_failure::transport, {}, 0, {}, failure.what()));
  }
}

}  // namespace troupe::collective
