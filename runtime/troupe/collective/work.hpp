#pragma once
#include <memory>

#include "troupe/collective/call.hpp"

namespace troupe {

class operation_queue;

/// A handle to a call in flight. Copies name the same call; the tensors of the call are kept alive by it and
/// must not be touched until it has ended. A handle that is dropped leaves the call running. The communicator
/// outlives its handles' use. Thread-safe.
class work {
 public:
  /// One that has ended already.
  work() = default;
  work(std::shared_ptr<call> of, operation_queue& queue) : call_(std::move(of)), queue_(&queue) {}

  /// Returns when the call has ended; throws collective_error if it failed. At the latest when its timeout
  /// has passed.
  void wait();
  /// Whether it has ended, well or not.
  bool is_done() const { return !call_ || call_->finished; }
  /// How long it ran, from its beginning on this member; of one that has ended.
  std::chrono::nanoseconds time_taken() const {
    return call_ ? call_->ended - call_->begun : std::chrono::nanoseconds(0);
  }
  /// Gives up, for the whole group and all its members (they cannot go on without this one): this call and
  /// all others fail with collective_error (cancelled). Nothing happens if the call has ended.
  void cancel();
  /// `owner` lives as long as this handle and those copied from it.
  void keep(std::shared_ptr<const void> owner) { owner_ = std::move(owner); }

 private:
  std::shared_ptr<const void> owner_;  // last to go
  std::shared_ptr<call> call_;
  operation_queue* queue_ = nullptr;
};

}  // namespace troupe
