#include "troupe/collective/hierarchy/hierarchy_backend.hpp"

#include <algorithm>
#include <utility>

#include "troupe/collective/hierarchy/algorithms.hpp"
#include "troupe/collective/shm/algorithms.hpp"
#include "troupe/collective/shm/process_backend.hpp"

namespace troupe::collective {
namespace {

/// The memory of a member that is alone on its host: only the member itself accesses it.
class single_member_memory final : public shm::member_memory {
 public:
  shm::buffer_location locate(std::span<const std::byte> elements) override {
    return {0, reinterpret_cast<std::uint64_t>(elements.data())};
  }
  std::byte* resolve(int, const shm::buffer_location& location) override {
    return reinterpret_cast<std::byte*>(location.offset);
  }
  tensor allocate(shape extents, dtype type) override { return tensor::zeros(std::move(extents), type); }
  tensor empty(shape extents, dtype type) override { return tensor::empty(std::move(extents), type); }
  void revoke(std::span<const std::byte>, const shm::control_block&) override {}
};

std::unique_ptr<shm::member_memory> memory_of(const host_members& local, shared_memory::shared_heap& heap) {
  if (local.peers.size() == 1) return std::make_unique<single_member_memory>();
  return std::make_unique<process_memory>(heap, local.peers);
}

/// The operations that gain by shared memory. In the others every byte has one receiver anyway, but for the
/// results of nodes, whose tree is not that of the hosts' members.
bool is_hierarchical(const collective_operation& what) {
  if (!what.nodes.empty()) return false;
  switch (what.signature.kind) {
    case collective_kind::all_reduce:
    case collective_kind::reduce_scatter:
    case collective_kind::all_gather:
    case collective_kind::broadcast:
    case collective_kind::reduce:
    case collective_kind::barrier:
      return true;
    default:
      return false;
  }
}

}  // namespace

hierarchy_backend::hierarchy_backend(rendezvous& point, ucx_group_resources& resources,
                                     hierarchy::host_topology topology, host_members local)
    : network_backend(point, resources),
      topology_(std::move(topology)),
      local_(std::move(local)),
      block_(local_.area->control_block(), local_.members.size(), local_.members.member,
             engine_events_of(local_.peers, *resources.engine)),
      memory_(memory_of(local_, resources.heap)) {}

std::string_view hierarchy_backend::algorithm_of(const collective_operation& what) const {
  if (is_hierarchical(what)) return "hierarchy";
  return what.peer >= 0 && is_local(what.peer) ? "memory" : "network";
}

void hierarchy_backend::announce_sleep(int engine_event) {
  block_.announce_sleep(engine_event);
  network_backend::announce_sleep(engine_event);
}

void hierarchy_backend::cancel_sleep() {
  block_.cancel_sleep();
  network_backend::cancel_sleep();
}

bool hierarchy_backend::add_wake_sources(wake_sources& sources) {
  sources.at_most = block_.bounded(sources.at_most);
  return network_backend::add_wake_sources(sources);
}

void hierarchy_backend::abort(const collective_error& why) noexcept {
  network_backend::abort(why);
  memory_->revoke_all(block_);
}

algorithm hierarchy_backend::make_algorithm(const collective_operation& what, std::uint64_t sequence) {
  if (!what.nodes.empty()) return network_backend::make_algorithm(what, sequence);
  switch (what.signature.kind) {
    case collective_kind::all_reduce:
      return hierarchy::all_reduce(make_call(what, sequence));
    case collective_kind::reduce_scatter:
      return hierarchy::reduce_scatter(make_call(what, sequence));
    case collective_kind::all_gather:
      return hierarchy::all_gather(make_call(what, sequence));
    case collective_kind::broadcast:
      return hierarchy::broadcast(make_call(what, sequence));
    case collective_kind::reduce:
      return hierarchy::reduce(make_call(what, sequence));
    case collective_kind::barrier:
      return hierarchy::barrier(make_call(what, sequence));
    default:
      bool has_local_peer = what.peer >= 0 && is_local(what.peer);
      return has_local_peer ? local_message(what, sequence) : network_backend::make_algorithm(what, sequence);
  }
}

hierarchy::hierarchy_call hierarchy_backend::make_call(const collective_operation& what,
                                                       std::uint64_t sequence) {
  shm::call_scope scope(local_calls_, block_, what, sequence);
  return {.local = shm::shm_call(block_, *memory_, local_.members, std::move(scope), what, sequence),
          .remote = make_net_call(what, sequence),
          .topology = topology_};
}

/// A send or receive in shared memory, where the peer is named by its local index.
algorithm hierarchy_backend::local_message(const collective_operation& what, std::uint64_t sequence) {
  auto local = what;
  local.peer = topology_.local_index_of(what.peer);
  shm::call_scope scope(local_calls_, block_, local, sequence);
  auto message = local.signature.kind == collective_kind::send
                     ? shm::send(block_, *memory_, std::move(scope), local, sequence)
                     : shm::receive(block_, *memory_, std::move(scope), local_.members, local, sequence);
  co_await finished(message);
}

bool hierarchy_backend::has_arrived(int local_index, std::uint64_t sequence) const {
  const auto& slot = block_.slot(block_.member(), local_index, sequence);
  return slot.sequence.load(std::memory_order_acquire) >= sequence;
}

/// Messages between hosts start when the local members have arrived. Until then a call also waits for the
/// members of other hosts that are not known to have entered it, since no member leaves a call before all
/// have entered it.
bool hierarchy_backend::waits_for_member(int member) const {
  if (network_backend::waits_for_member(member)) return true;
  auto index = topology_.local_index_of(member);
  return std::ranges::any_of(local_calls_, [&](const shm::running_call& each) {
    if (each.what->peer >= 0) return is_local(member) && each.what->peer == index;
    if (is_local(member)) return !has_arrived(index, each.sequence) || !block_.has_finished_phase(index);
    bool waits_locally = false;
    for (int i = 0; i < block_.num_members(); ++i)
      waits_locally = waits_locally || (i != block_.member() && !has_arrived(i, each.sequence));
    return waits_locally && status_of(member).sequence < each.sequence;
  });
}

}  // namespace troupe::collective
