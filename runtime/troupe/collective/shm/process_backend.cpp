#include "troupe/collective/shm/process_backend.hpp"

#include <stdexcept>

#include "troupe/collective/collective_error.hpp"
#include "troupe/collective/shm/control_block.hpp"

namespace troupe {

namespace {

// A socket holds some hundred messages, and the receiver may not have read them for a while.
constexpr int locations_between_exchanges = 16;

}  // namespace

process_memory::process_memory(shared_heap& heap, std::vector<std::shared_ptr<peer_process>> peers)
    : heap_(heap), peers_(std::move(peers)), mapped_(peers_.size()) {}

shm::buffer_location process_memory::locate(std::span<const std::byte> elements) {
  if (++num_located_ % locations_between_exchanges == 0) exchange_released();
  auto found = heap_.locate(elements);
  if (!found) return {};
  for (const auto& peer : peers_)
    if (peer) peer->send_segment(*found->segment);
  return {found->segment->id, found->offset};
}

std::byte* process_memory::resolve(int member, const shm::buffer_location& location) {
  auto& known = mapped_[static_cast<std::size_t>(member)];
  auto at = known.find(location.segment);
  if (at == known.end()) {
    auto segment = peers_[static_cast<std::size_t>(member)]->find_segment(location.segment);
    if (!segment)
      throw std::runtime_error("segment " + std::to_string(location.segment) + " of member " +
                               std::to_string(member) + " was named but not sent");
    at = known.emplace(location.segment, std::move(segment)).first;
  }
  if (location.offset >= at->second->size_bytes())
    throw std::runtime_error("member " + std::to_string(member) + " named a place outside its segment");
  return at->second->first() + location.offset;
}

// The others cannot access the fresh pages, so there is no access to wait for.
void process_memory::revoke(std::span<const std::byte> elements, const shm::control_block&) {
  heap_.revoke(elements);
}

/// Tells the peers which segments were freed here, and unmaps those that were freed there. Only while no
/// algorithm uses an address from resolve(): the thread that calls locate() is the only one of the group.
void process_memory::exchange_released() {
  auto released = heap_.take_released();
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i]) continue;
    peers_[i]->release_segments(released);
    peers_[i]->receive_segments();
    // The last reference is in this map: the owner has freed the segment.
    std::erase_if(mapped_[i], [](const auto& each) { return each.second.use_count() == 1; });
  }
}

process_backend::process_backend(group_description group, ucx_group_resources& resources,
                                 std::vector<std::shared_ptr<peer_process>> peers,
                                 std::shared_ptr<mapping> block_memory)
    : shm_backend(group, shm::control_block(block_memory->first(), group.size(), group.member),
                  std::make_unique<process_memory>(resources.heap, peers)),
      peers_(std::move(peers)),
      seen_ended_(peers_.size()),
      block_memory_(std::move(block_memory)),
      watch_(resources.connector, [this] { wake(); }) {}

// A process may end normally after its part of the last call. What it wrote before is in memory, but this
// member may not have read it yet. So after an end was seen, calls are advanced once more before it counts as
// a loss.
void process_backend::check_members() {
  shm_backend::check_members();
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i] || !peers_[i]->has_ended()) continue;
    if (seen_ended_[i]) {
      throw_if_waiting_for(static_cast<int>(i));
    } else {
      seen_ended_[i] = true;
      wake();
    }
  }
}

namespace {

using peer_list = std::vector<std::shared_ptr<peer_process>>;

/// The members on this member's host, with this one.
std::vector<int> local_members_of(const rendezvous& at, const std::vector<member_info>& infos) {
  std::vector<int> found;
  const auto& own = infos[static_cast<std::size_t>(at.member())];
  for (std::size_t i = 0; i < infos.size(); ++i)
    if (infos[i].is_on_host_of(own)) found.push_back(static_cast<int>(i));
  return found;
}

/// Connections to the local members, by member. Empty if one cannot be reached, with the reason in
/// `obstacle`.
peer_list connect_to_all(const std::vector<int>& local_members, const std::vector<member_info>& infos,
                         rendezvous& at, ucx_group_resources& resources, std::string& obstacle) {
  peer_list peers(infos.size());
  for (int member : local_members) {
    if (member == at.member()) continue;
    auto i = static_cast<std::size_t>(member);
    try {
      peers[i] = resources.connector.connection_to(infos[i].process, infos[i].address, at.half_time());
    } catch (const std::runtime_error& error) {
      obstacle = "rank " + to_string(at.rank_of(member)) + ": " + error.what();
      return {};
    }
  }
  return peers;
}

/// The first local member allocates the control block and sends it to the others.
std::shared_ptr<mapping> share_control_block(rendezvous& at, int first, const peer_list& peers,
                                             std::size_t num_local, shared_heap& heap) {
  auto size = whole_pages(shm::control_block::size_bytes(static_cast<int>(num_local)));
  if (at.member() == first) {
    auto segment = heap.make_segment(size);
    for (const auto& peer : peers)
      if (peer) peer->send_segment(*segment);
    at.put("control_block", std::to_string(segment->id));
    return map_segment(segment->fd.get(), size);
  }
  auto memory =
      peers[static_cast<std::size_t>(first)]->find_segment(std::stoull(at.get("control_block", first)));
  if (!memory || memory->size_bytes() != size)
    throw collective_error(collective_failure::transport, at.group().name, 0, {at.rank_of(first)},
                           "group " + at.group().name + ": rank " + to_string(at.rank_of(first)) +
                               " did not hand over the group's memory");
  return memory;
}

}  // namespace

host_members connect_host_members(rendezvous& at, const std::vector<member_info>& infos,
                                  ucx_group_resources& resources) {
  auto local_members = local_members_of(at, infos);
  std::string obstacle;
  auto peers = connect_to_all(local_members, infos, at, resources, obstacle);
  at.watch(peers);
  // All local members use shared memory, or the group fails on all members.
  for (const auto& problem : at.all_gather("obstacle", obstacle))
    if (!problem.empty())
      throw collective_error(
          collective_failure::transport, at.group().name, 0, {},
          "group " + at.group().name + " has members of one host that do not share memory (" + problem + ")");
  host_members made{.members = {at.group().name, {}, 0}, .peers = {}, .block_memory = {}};
  for (int member : local_members) {
    if (member == at.member()) made.members.member = made.members.size();
    made.members.ranks.push_back(at.rank_of(member));
    made.peers.push_back(peers[static_cast<std::size_t>(member)]);
  }
  made.block_memory =
      share_control_block(at, local_members.front(), peers, local_members.size(), resources.heap);
  return made;
}

}  // namespace troupe
