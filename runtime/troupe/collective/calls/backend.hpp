#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/collective/calls/collective_error.hpp"
#include "troupe/collective/calls/operation.hpp"
#include "troupe/collective/engine/algorithm.hpp"
#include "troupe/collective/engine/progress_engine.hpp"

namespace troupe::collective {

constexpr int no_event = -1;

/// What another member was last seen doing.
struct member_state {
  member_index member = 0;
  std::string
      activity;  ///< for people: "has finished call 7, barrier, ...", "is in ...", "has sent no report"
  bool is_behind = false;  ///< the others wait for it in the call in question
};

/// Carries out the calls of one group: the interface that a backend implements. Used by one thread at a time,
/// but for wake() and what says otherwise.
class collective_backend {
 public:
  virtual ~collective_backend() = default;
  /// "ucx", "local", "nccl", "gloo", "mpi"
  virtual std::string_view name() const = 0;
  /// Where the tensors of its calls must be.
  virtual troupe::device device() const { return {}; }
  /// Whether reductions follow the fixed tree of troupe/ops/tree_reduction.hpp, and all_reduce carries out
  /// operations with nodes.
  virtual bool has_fixed_tree() const { return false; }
  /// The name of the algorithm of this call, for the profile. From any thread.
  virtual std::string_view algorithm_of(const collective_operation&) const { return name(); }
  /// The algorithm of one call. `what` outlives it. Collectives run one after the other in order of
  /// `sequence`; sends and receives, counted for each peer and direction, run beside them. The algorithm
  /// throws collective_error (mismatch) as soon as it detects that members make different calls.
  virtual algorithm run(const collective_operation& what, std::uint64_t sequence) = 0;
  /// Called in every round while calls are in flight. Never blocks.
  virtual void progress() {}
  /// Called less often. Throws collective_error if a member has ended or has aborted the group.
  virtual void check_members() {}
  /// Called before a thread sleeps. Calls are advanced once more between this and the sleep or
  /// cancel_sleep().
  /// - engine_event: the eventfd of the progress engine, which sleeps for this group among others, and is
  ///   woken by writing to it
  /// - no_event: the thread that calls sleep() next
  virtual void announce_sleep(int /*engine_event*/) {}
  virtual void cancel_sleep() {}
  /// Whether a waiting thread can sleep(). Otherwise it leaves that to the engine.
  virtual bool has_own_sleep() const { return true; }
  /// Sleeps until something may have changed or wake() was called, counted from announce_sleep(), or
  /// `at_most` has passed.
  virtual void sleep(std::chrono::microseconds at_most) = 0;
  /// Adds what the engine has to wait for besides its event, instead of sleep(). False: progress() has
  /// something to do already.
  virtual bool add_wake_sources(wake_sources& /*sources*/) { return true; }
  /// Ends the sleep that was announced. From any thread.
  virtual void wake() = 0;
  /// What the other members are doing while this one waits in call `sequence`, as far as it can find out. May
  /// block for some hundred milliseconds. Throws collective_error with the cause if one of them has aborted
  /// the group.
  virtual std::vector<member_state> examine(std::uint64_t sequence) = 0;
  /// Aborts the group and tells the other members why. When it returns no other member writes to this
  /// member's tensors any more, not even a process that is stopped now and continued later. Idempotent.
  virtual void abort(const collective_error& why) noexcept = 0;
  /// Whether abort() and examine() return within microseconds.
  virtual bool aborts_at_once() const { return false; }
  /// A tensor that the other members can access without a copy, if the backend has such memory. From any
  /// thread.
  virtual tensor allocate(shape extents, dtype type) { return tensor::zeros(std::move(extents), type); }
};

}  // namespace troupe::collective
