#pragma once
#include <memory>
#include <vector>

#include "troupe/collective/direct/board.hpp"
#include "troupe/collective/direct/member_memory.hpp"
#include "troupe/collective/direct/presence.hpp"
#include "troupe/collective/hierarchy/placement.hpp"
#include "troupe/collective/hierarchy/site.hpp"
#include "troupe/collective/ucx/bell_watch.hpp"
#include "troupe/collective/ucx/neighbourhood.hpp"
#include "troupe/collective/ucx/network_backend.hpp"

namespace troupe {

/// Members on several hosts of which some have several members: these reach into each other's memory, in
/// calls that gain by it. Words about failures go over the network as between single hosts.
class mixed_backend final : public network_backend {
 public:
  mixed_backend(rendezvous& at, ucx_group_resources& resources, hierarchy::placement where,
                neighbourhood met);

  std::string_view algorithm_of(const collective_operation& what) const override;
  void announce_sleep() override;
  void cancel_sleep() override;
  void sleep(std::chrono::microseconds at_most) override { network_backend::sleep(board_.bounded(at_most)); }
  void abort(const collective_error& why) noexcept override;
  tensor allocate(shape extents, dtype type) override { return memory_->allocate(std::move(extents), type); }

 protected:
  algorithm chosen(const collective_operation& what, std::uint64_t sequence) override;
  bool awaits(int member) const override;

 private:
  /// The neighbour's note of a collective call is there.
  bool has_come(int place, std::uint64_t sequence) const;
  bool is_neighbour(int member) const { return where_.host_of(member) == where_.host_of(group().member); }
  hierarchy::site meet(const collective_operation& what, std::uint64_t sequence);
  algorithm between_neighbours(const collective_operation& what, std::uint64_t sequence);

  hierarchy::placement where_;
  neighbourhood met_;
  direct::board board_;
  std::unique_ptr<direct::member_memory> memory_;
  std::vector<direct::running_call> running_here_;  ///< in memory, peers by place
  bell_watch bells_;
};

}  // namespace troupe
