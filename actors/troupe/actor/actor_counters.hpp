#pragma once
#include <array>
#include <atomic>
#include <cstdint>

#include "troupe/actor/actor_counts.hpp"
#include "troupe/actor/arrival_marks.hpp"
#include "troupe/actor/handler_times.hpp"

namespace troupe::actors::actor {

/// What an actor counts while it runs, readable by any thread. It may outlive the actor.
///
/// Who counts: senders with `enqueued`; the thread that runs the actor with the rest, and there is one such
/// thread at a time, which hands over by CAF's scheduling; `frame_received` any thread.
class actor_counters {
 public:
  /// Before a message goes into the mailbox.
  void enqueued();
  /// From now on a handler runs that began at this time.
  void running_since(std::int64_t begun_ns) { running_since_ns_.store(begun_ns, std::memory_order_relaxed); }
  /// The handler that began then is over. No effect if another thread has begun one meanwhile.
  void stopped_running(std::int64_t begun_ns);
  /// A message is taken to be handled.
  void taken() { add_alone(num_taken_, 1, std::memory_order_release); }
  /// It was put back for later.
  void put_back() {
    num_taken_.store(num_taken_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  }
  void handled(std::int64_t time_ns);
  /// By this actor.
  void sent() { add_alone(num_sent_, 1); }
  /// A message that it sent to another process, or that came from one: bytes of the frame's body.
  void frame_sent(std::uint64_t bytes) { add_alone(frame_bytes_sent_, bytes); }
  void frame_received(std::uint64_t bytes) {
    frame_bytes_received_.fetch_add(bytes, std::memory_order_relaxed);
  }
  /// The actor has ended: what waited is dropped.
  void close() { is_closed_.store(true, std::memory_order_relaxed); }

  actor_counts read() const;

 private:
  using counter = std::atomic<std::uint64_t>;
  /// By one thread at a time: cheaper than a read-modify-write.
  static void add_alone(counter& to, std::uint64_t more,
                        std::memory_order order = std::memory_order_relaxed) {
    to.store(to.load(std::memory_order_relaxed) + more, order);
  }

  // by senders, on a cache line of their own
  alignas(64) counter num_enqueued_ = 0;
  counter frame_bytes_received_ = 0;
  arrival_marks marks_;
  // by the thread that runs the actor
  alignas(64) counter num_taken_ = 0;
  counter num_sent_ = 0, frame_bytes_sent_ = 0, handler_ns_ = 0;
  std::atomic<std::int64_t> running_since_ns_ = 0;
  std::atomic<bool> is_closed_ = false;
  std::array<counter, num_handler_buckets> handler_times_{};
};

/// Of steady_clock, in nanoseconds.
std::int64_t steady_ns();

}  // namespace troupe::actors::actor
