#pragma once
#include <condition_variable>
#include <mutex>
#include <vector>

#include "troupe/collective/calls/backend.hpp"
#include "troupe/collective/calls/group.hpp"
#include "troupe/collective/diagnostics/failure_report.hpp"

namespace troupe::collective {

/// The common part of backends over a library with its own collectives (gloo, MPI, NCCL). Such libraries
/// neither say which member is missing nor notice that members make different calls. So members exchange the
/// signature of every call first, where that is possible, and failure reports through a store when a call has
/// failed.
class library_backend : public collective_backend {
 public:
  library_backend(group_description group, store& keys);

  /// Throws collective_error with the cause if a member has aborted the group.
  std::vector<member_state> examine(std::uint64_t sequence) override;
  void abort(const collective_error& why) noexcept override;

  void announce_sleep(int engine_event) override;
  void cancel_sleep() override { announce_sleep(no_event); }
  void sleep(std::chrono::microseconds at_most) override;
  bool add_wake_sources(wake_sources& sources) override;
  void wake() override;

 protected:
  const group_description& group() const { return group_; }
  /// Records the call for failure reports. Every algorithm of a collective begins with this and ends with
  /// leave().
  void enter(const collective_operation& what, std::uint64_t sequence);
  void leave();
  /// Throws collective_error (mismatch) unless all members make the same call.
  void require_agreement(const std::vector<call_signature>& by_member, std::uint64_t sequence) const;
  /// The same for a message of one peer. theirs: the signature of the send.
  void require_message(const call_signature& theirs, const collective_operation& what,
                       std::uint64_t sequence) const;
  /// The library has failed: reads the others' failure reports, and throws what they say.
  [[noreturn]] void fail(const std::string& problem, const collective_operation& what,
                         std::uint64_t sequence);

  /// This member has failed for a reason of its own: throws without reading reports.
  [[noreturn]] void fail_locally(const std::string& problem, const collective_operation& what,
                                 std::uint64_t sequence);

  /// Ends the library's calls of this member, and if it can those of the others, because of `why`. Afterwards
  /// nothing writes to this member's tensors. Idempotent.
  virtual void close(const collective_error& why) noexcept = 0;
  /// The longest sleep between two rounds, for libraries that do not call wake().
  virtual std::chrono::microseconds poll_interval() const { return std::chrono::milliseconds(50); }

 private:
  failure_report own_report() const;
  void throw_if_aborted(const member_reports& reports) const;

  group_description group_;
  failure_report_store report_store_;
  std::uint64_t sequence_ = 0;  // of the newest collective call
  call_signature signature_;
  bool is_in_call_ = false;

  std::mutex mutex_;
  std::condition_variable awake_;
  bool woken_ = false;
  int engine_event_ = no_event;
};

}  // namespace troupe::collective
