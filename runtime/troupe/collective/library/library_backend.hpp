#pragma once
#include <condition_variable>
#include <mutex>
#include <vector>

#include "troupe/collective/backend.hpp"
#include "troupe/collective/group.hpp"
#include "troupe/collective/library/left_words.hpp"

namespace troupe {

/// What the backends have in common that stand on a library with collectives of its own (gloo, MPI, NCCL):
/// such libraries do not say who is missing and do not notice that members differ. So the members tell each
/// other the signature of every call first where that is possible, and ask each other through a store when
/// one has failed.
class library_backend : public collective_backend {
 public:
  library_backend(group_description group, store& rendezvous);

  /// Throws collective_error with the cause of a member that gave up.
  std::vector<member_state> examine(std::uint64_t sequence) override;
  void abort(const collective_error& why) noexcept override;

  void announce_sleep() override;
  void cancel_sleep() override {}
  void sleep(std::chrono::microseconds at_most) override;
  void wake() override;

 protected:
  const group_description& group() const { return group_; }
  /// The next call of this member, for reports; every algorithm of a collective begins with it.
  void enter(const collective_operation& what, std::uint64_t sequence);
  void leave();
  /// Throws collective_error (mismatch) unless all members signed the same.
  void require_agreement(const std::vector<call_signature>& by_member, std::uint64_t sequence) const;
  /// The same for a message of one peer, of which `theirs` says what was sent.
  void require_message(const call_signature& theirs, const collective_operation& what,
                       std::uint64_t sequence) const;
  /// The library refused: asks the others, and throws what is known then.
  [[noreturn]] void fail(const std::string& problem, const collective_operation& what,
                         std::uint64_t sequence);

  /// This member cannot go on, for a reason that is none of the others': nobody is asked.
  [[noreturn]] void fail_here(const std::string& problem, const collective_operation& what,
                              std::uint64_t sequence);

  /// The library's calls of this member end, and as far as it can those of the others: afterwards nothing
  /// writes to this member's tensors. Idempotent.
  virtual void break_off() noexcept = 0;
  /// How long to wait before looking again, where nobody calls wake().
  virtual std::chrono::microseconds patience() const { return std::chrono::milliseconds(50); }

 private:
  last_words own_words() const;
  void require_nobody_gave_up(const members_words& words) const;

  group_description group_;
  left_words left_words_;
  std::uint64_t sequence_ = 0;  // of the newest collective call
  call_signature signature_;
  bool is_inside_ = false;

  std::mutex mutex_;
  std::condition_variable awake_;
  bool woken_ = false;
};

}  // namespace troupe
