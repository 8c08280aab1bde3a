#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "troupe/collective/group/rendezvous.hpp"
#include "troupe/collective/group/ucx_group.hpp"
#include "troupe/collective/shm/memory/member_memory.hpp"
#include "troupe/collective/shm/memory/peer_connector.hpp"
#include "troupe/collective/shm/memory/peer_process.hpp"
#include "troupe/collective/shm/shm_backend.hpp"
#include "troupe/shared_memory/shared_heap.hpp"

namespace troupe::collective {

/// Memory of members that are processes of one host. Each allocates in its own shared_heap and maps the
/// segments of the others. An owner sends a segment to all members before it first names it, so resolving
/// never waits for the owner.
class process_memory : public shm::member_memory {
 public:
  /// peers: by member, null for this one.
  process_memory(shared_memory::shared_heap& heap, std::vector<std::shared_ptr<peer_process>> peers);

  shm::buffer_location locate(std::span<const std::byte> elements) override;
  std::byte* resolve(int member, const shm::buffer_location& location) override;
  tensor allocate(shape extents, dtype type) override { return heap_.allocate(std::move(extents), type); }
  tensor empty(shape extents, dtype type) override { return heap_.empty(std::move(extents), type); }
  void revoke(std::span<const std::byte> elements, const shm::control_block& block) override;

 private:
  void exchange_released();

  shared_memory::shared_heap& heap_;
  std::vector<std::shared_ptr<peer_process>> peers_;
  std::vector<std::map<std::uint64_t, std::shared_ptr<shared_memory::mapping>>>
      mapped_;  // by member, by segment id
  int num_located_ = 0;
};

/// The calls of a group whose members are processes of one host. When a process ends, all members that wait
/// for it fail at once.
class process_backend : public shm::shm_backend {
 public:
  /// peers: by member, null for this one. area: of the same group for all members.
  process_backend(group_description group, ucx_group_resources& resources,
                  std::vector<std::shared_ptr<peer_process>> peers, std::unique_ptr<group_area> area);

  std::string_view name() const override { return "ucx"; }
  void check_members() override;

 private:
  std::vector<std::shared_ptr<peer_process>> peers_;
  std::vector<bool> seen_ended_;
  std::unique_ptr<group_area> area_;
  peer_connector::watch watch_;
};

/// By member: the events of their processes' engines. peers: null for this member.
std::vector<int> engine_events_of(const std::vector<std::shared_ptr<peer_process>>& peers,
                                  const progress_engine& own);

/// The members of a new group that are on this member's host (its local members), and their control block.
struct host_members {
  group_description members;                         ///< their ranks; `member`: this one's local index
  std::vector<std::shared_ptr<peer_process>> peers;  ///< by local index, null for this one
  std::unique_ptr<group_area> area;                  ///< with the control block, the same for all of them
};

/// Connects the members of each host with each other; all members of the group call this together. infos: of
/// all members. Throws what rendezvous throws, and collective_error (transport) on all members if members of
/// one host cannot share memory.
host_members connect_host_members(rendezvous& point, const std::vector<member_info>& infos,
                                  ucx_group_resources& resources);

}  // namespace troupe::collective
