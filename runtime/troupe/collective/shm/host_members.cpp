#include "troupe/collective/shm/host_members.hpp"

#include "troupe/collective/collective_error.hpp"
#include "troupe/collective/shm/control_block.hpp"

namespace troupe {
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
      obstacle = "rank " + std::to_string(at.rank_of(member)) + ": " + error.what();
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
                           "group " + at.group().name + ": rank " + std::to_string(at.rank_of(first)) +
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
  for (const auto& verdict : at.all_gather("obstacle", obstacle))
    if (!verdict.empty())
      throw collective_error(
          collective_failure::transport, at.group().name, 0, {},
          "group " + at.group().name + " has members of one host that do not share memory (" + verdict + ")");
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
