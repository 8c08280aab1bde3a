#pragma once
#include <memory>
#include <vector>

#include "troupe/collective/hierarchy/hierarchy_call.hpp"
#include "troupe/collective/hierarchy/host_topology.hpp"
#include "troupe/collective/net/network_backend.hpp"
#include "troupe/collective/shm/memory/control_block.hpp"
#include "troupe/collective/shm/memory/member_memory.hpp"
#include "troupe/collective/shm/process_backend.hpp"
#include "troupe/collective/shm/shm_call.hpp"

namespace troupe::collective {

/// Calls of a group on several hosts, of which some have several members. These use shared memory in the
/// calls that gain by it; everything else, failure reports too, goes over the network as between single
/// members.
class hierarchy_backend final : public network_backend {
 public:
  hierarchy_backend(rendezvous& point, ucx_group_resources& resources, hierarchy::host_topology topology,
                    host_members local);

  std::string_view algorithm_of(const collective_operation& what) const override;
  void announce_sleep(int engine_event) override;
  void cancel_sleep() override;
  /// The control block wakes either a thread on its futex, or the engine, which can wait for messages too.
  bool has_own_sleep() const override { return false; }
  bool add_wake_sources(wake_sources& sources) override;
  void abort(const collective_error& why) noexcept override;
  tensor allocate(shape extents, dtype type) override { return memory_->allocate(std::move(extents), type); }

 protected:
  algorithm make_algorithm(const collective_operation& what, std::uint64_t sequence) override;
  bool waits_for_member(int member) const override;

 private:
  /// Whether the local member has entered collective call `sequence`.
  bool has_arrived(int local_index, std::uint64_t sequence) const;
  bool is_local(int member) const { return topology_.host_of(member) == topology_.host_of(group().member); }
  hierarchy::hierarchy_call make_call(const collective_operation& what, std::uint64_t sequence);
  algorithm local_message(const collective_operation& what, std::uint64_t sequence);

  hierarchy::host_topology topology_;
  host_members local_;
  shm::control_block block_;
  std::unique_ptr<shm::member_memory> memory_;
  std::vector<shm::running_call> local_calls_;  ///< in shared memory; peers by local index
};

}  // namespace troupe::collective
