#pragma once
#include <memory>

#include "troupe/collective/calls/backend.hpp"
#include "troupe/collective/calls/group.hpp"
#include "troupe/collective/shm/memory/control_block.hpp"
#include "troupe/collective/shm/shm_call.hpp"

namespace troupe::collective::shm {

/// The calls of a group whose members share memory: threads of a process, or processes of a host.
class shm_backend : public collective_backend {
 public:
  shm_backend(group_description group, control_block block, std::unique_ptr<member_memory> memory);

  bool has_fixed_tree() const override { return true; }
  algorithm run(const collective_operation& what, std::uint64_t sequence) override;
  void check_members() override;
  void announce_sleep(int engine_event) override { block_.announce_sleep(engine_event); }
  void cancel_sleep() override { block_.cancel_sleep(); }
  void sleep(std::chrono::microseconds at_most) override { block_.sleep(at_most); }
  bool add_wake_sources(wake_sources& sources) override;
  void wake() override { block_.notify(block_.member()); }
  std::vector<member_state> examine(std::uint64_t sequence) override;
  void abort(const collective_error& why) noexcept override;
  bool aborts_at_once() const override { return true; }
  tensor allocate(shape extents, dtype type) override { return memory_->allocate(std::move(extents), type); }

 protected:
  const group_description& group() const { return group_; }
  /// Throws collective_error (lost_member) if a call that runs waits for `member`, whose process has ended.
  void throw_if_waiting_for(int member) const;

 private:
  static algorithm run_collective(shm_call call);
  bool is_behind(int member, std::uint64_t sequence) const;

  group_description group_;
  control_block block_;
  std::unique_ptr<member_memory> memory_;
  std::vector<running_call> running_;
};

}  // namespace troupe::collective::shm
