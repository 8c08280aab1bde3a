#pragma once
#include <memory>

#include "troupe/collective/backend.hpp"
#include "troupe/collective/direct/board.hpp"
#include "troupe/collective/direct/meeting.hpp"
#include "troupe/collective/group.hpp"

namespace troupe::direct {

/// Calls among members that share memory: threads of a process, or processes of a host.
class direct_backend : public collective_backend {
 public:
  direct_backend(group_description group, board at, std::unique_ptr<member_memory> memory);

  algorithm run(const collective_operation& what, std::uint64_t sequence) override;
  void check_members() override;
  void announce_sleep() override { board_.announce_sleep(); }
  void cancel_sleep() override { board_.cancel_sleep(); }
  void sleep(std::chrono::microseconds at_most) override { board_.sleep(at_most); }
  void wake() override { board_.ring(board_.member()); }
  std::vector<member_state> examine(std::uint64_t sequence) override;
  void abort(const collective_error& why) noexcept override;
  tensor allocate(shape extents, dtype type) override { return memory_->allocate(std::move(extents), type); }

 protected:
  const group_description& group() const { return group_; }
  const board& meeting_place() const { return board_; }
  /// Throws collective_error (lost_member) if a call that runs waits for `member`, whose process has ended.
  void throw_if_needed(int member) const;

 private:
  static algorithm run_collective(meeting at);
  bool is_behind(int member, std::uint64_t sequence) const;

  group_description group_;
  board board_;
  std::unique_ptr<member_memory> memory_;
  std::vector<running_call> running_;
};

}  // namespace troupe::direct
