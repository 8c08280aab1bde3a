#include "troupe/collective/ucx/neighbourhood.hpp"

#include "troupe/collective/collective_error.hpp"
#include "troupe/collective/direct/board.hpp"

namespace troupe {
namespace {

using peer_list = std::vector<std::shared_ptr<host_peer>>;

/// The members on this one's host.
std::vector<int> neighbours_of(const rendezvous& at, const std::vector<member_card>& cards) {
  std::vector<int> found;
  const auto& own = cards[static_cast<std::size_t>(at.member())];
  for (std::size_t i = 0; i < cards.size(); ++i)
    if (cards[i].is_on_host_of(own)) found.push_back(static_cast<int>(i));
  return found;
}

/// Connections to the neighbours, by member; empty if there is one that cannot be reached from here, with the
/// reason in `obstacle`.
peer_list meet_all(const std::vector<int>& neighbours, const std::vector<member_card>& cards, rendezvous& at,
                   ucx_group_resources& resources, std::string& obstacle) {
  peer_list peers(cards.size());
  for (int neighbour : neighbours) {
    if (neighbour == at.member()) continue;
    auto i = static_cast<std::size_t>(neighbour);
    try {
      peers[i] = resources.exchange.meet(cards[i].process, cards[i].address, at.half_time());
    } catch (const std::runtime_error& error) {
      obstacle = "rank " + std::to_string(at.rank_of(neighbour)) + ": " + error.what();
      return {};
    }
  }
  return peers;
}

/// The first of them makes it; the others are given it.
std::shared_ptr<mapping> share_board(rendezvous& at, int first, const peer_list& peers, std::size_t num_here,
                                     shared_heap& heap) {
  auto size = whole_pages(direct::board::size_bytes(static_cast<int>(num_here)));
  if (at.member() == first) {
    auto segment = heap.make_bare_segment(size);
    for (const auto& peer : peers)
      if (peer) peer->give(*segment);
    at.put("board", std::to_string(segment->id));
    return map_segment(segment->fd.get(), size);
  }
  auto memory = peers[static_cast<std::size_t>(first)]->find(std::stoull(at.get("board", first)));
  if (!memory || memory->size_bytes() != size)
    throw collective_error(collective_failure::transport, at.group().name, 0, {at.rank_of(first)},
                           "group " + at.group().name + ": rank " + std::to_string(at.rank_of(first)) +
                               " did not hand over the group's memory");
  return memory;
}

}  // namespace

neighbourhood meet_neighbours(rendezvous& at, const std::vector<member_card>& cards,
                              ucx_group_resources& resources) {
  auto neighbours = neighbours_of(at, cards);
  std::string obstacle;
  auto peers = meet_all(neighbours, cards, at, resources, obstacle);
  at.watch(peers);
  // Either all reach into each other's memory or none does.
  for (const auto& verdict : at.all_gather("obstacle", obstacle))
    if (!verdict.empty())
      throw collective_error(
          collective_failure::transport, at.group().name, 0, {},
          "group " + at.group().name + " has members of one host that do not share memory (" + verdict + ")");
  neighbourhood met{.members = {at.group().name, {}, 0}, .peers = {}, .board_memory = {}};
  for (int neighbour : neighbours) {
    if (neighbour == at.member()) met.members.member = met.members.size();
    met.members.ranks.push_back(at.rank_of(neighbour));
    met.peers.push_back(peers[static_cast<std::size_t>(neighbour)]);
  }
  met.board_memory = share_board(at, neighbours.front(), peers, neighbours.size(), resources.heap);
  return met;
}

}  // namespace troupe
