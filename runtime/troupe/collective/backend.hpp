#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/collective/algorithm.hpp"
#include "troupe/collective/collective_error.hpp"
#include "troupe/collective/operation.hpp"

namespace troupe {

/// What another member was last seen doing.
struct member_state {
  int member = 0;
  std::string doing;       ///< "has finished call 7, barrier, ...", "is in ...", "says nothing", for people
  bool is_behind = false;  ///< the others wait for it, in the call that is asked about
};

/// How the calls of one group are carried out. One thread at a time uses it, but for `wake`.
class collective_backend {
 public:
  virtual ~collective_backend() = default;
  /// "ucx", "local", "nccl", "gloo", "mpi"
  virtual std::string_view name() const = 0;
  /// Where the tensors of its calls lie.
  virtual device where() const { return {}; }
  /// Throws std::logic_error, "[what] ...", if this thread may not make or wait for calls now: a recording
  /// (captured_step.hpp) would repeat without them. From any thread.
  virtual void refuse_in_recording(std::string_view /*what*/) const {}
  /// What this call's algorithm is called, for the profile. From any thread.
  virtual std::string_view algorithm_of(const collective_operation&) const { return name(); }
  /// The algorithm of one call, which outlives it. Collectives run one after the other in order of their
  /// numbers; sends and receives (`sequence` counts them by peer and direction) run beside these. It throws
  /// collective_error (mismatch) as soon as members are seen to differ.
  virtual algorithm run(const collective_operation& what, std::uint64_t sequence) = 0;
  /// What must be done now and then while calls are in flight. Never blocks.
  virtual void progress() {}
  /// Less often: throws collective_error if a member has ended or given up.
  virtual void check_members() {}
  /// Calls are looked at once more between this and `sleep`, or this and `cancel_sleep`.
  virtual void announce_sleep() {}
  virtual void cancel_sleep() {}
  /// Until something may have changed or wake() was called since announce_sleep, or `at_most` has passed.
  virtual void sleep(std::chrono::microseconds at_most) = 0;
  /// From any thread.
  virtual void wake() = 0;
  /// What the other members are doing, as far as can be known while this one waits in call `sequence`.
  /// Throws collective_error instead where one of them is known to have given up, and why.
  virtual std::vector<member_state> examine(std::uint64_t sequence) = 0;
  /// Gives up: the other members hear why as soon as they look, and when it returns nobody will write to this
  /// member's tensors any more, not even a process that is stopped now and continued later. Idempotent.
  virtual void abort(const collective_error& why) noexcept = 0;
  /// A tensor that the other members can reach without a copy, where there is such memory.
  virtual tensor allocate(shape extents, dtype type) { return tensor::zeros(std::move(extents), type); }
};

}  // namespace troupe
