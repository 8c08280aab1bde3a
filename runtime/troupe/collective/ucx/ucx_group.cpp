#include "troupe/collective/ucx/ucx_group.hpp"

#include "troupe/collective/ucx/host_backend.hpp"
#include "troupe/collective/ucx/member_card.hpp"
#include "troupe/collective/ucx/rendezvous.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

using peer_list = std::vector<std::shared_ptr<host_peer>>;

/// Connections to all other members; empty if there is one that is not on this host or cannot be reached from
/// here, with the reason in `obstacle`.
peer_list meet_all(const std::vector<member_card>& cards, rendezvous& at, ucx_group_resources& resources,
                   std::string& obstacle) {
  peer_list peers(cards.size());
  const auto& own = cards[static_cast<std::size_t>(at.member())];
  for (std::size_t i = 0; i < cards.size(); ++i) {
    if (i == static_cast<std::size_t>(at.member())) continue;
    if (cards[i].process == own.process)
      throw_invalid("make_ucx_group", "one member in each process", "two (use make_local_group for threads)");
    try {
      if (!cards[i].is_on_host_of(own)) throw std::runtime_error("it is on another host, or another user's");
      peers[i] = resources.exchange.meet(cards[i].process, cards[i].address, at.half_time());
    } catch (const std::runtime_error& error) {
      obstacle = "rank " + std::to_string(at.rank_of(static_cast<int>(i))) + ": " + error.what();
      return {};
    }
  }
  return peers;
}

/// Member 0 makes it; the others are given it.
std::shared_ptr<mapping> share_board(rendezvous& at, const peer_list& peers, shared_heap& heap) {
  auto size = whole_pages(direct::board::size_bytes(static_cast<int>(peers.size())));
  if (at.member() == 0) {
    auto segment = heap.make_bare_segment(size);
    for (const auto& peer : peers)
      if (peer) peer->give(*segment);
    at.put("board", std::to_string(segment->id));
    return map_segment(segment->fd.get(), size);
  }
  auto memory = peers[0]->find(std::stoull(at.get("board", 0)));
  if (!memory || memory->size_bytes() != size)
    throw collective_error(collective_failure::transport, at.group().name, 0, {at.rank_of(0)},
                           "group " + at.group().name + ": rank " + std::to_string(at.rank_of(0)) +
                               " did not hand over the group's memory");
  return memory;
}

}  // namespace

std::unique_ptr<communicator> make_ucx_group(const group_description& group, store& place,
                                             ucx_group_resources& resources,
                                             const communicator_options& options) {
  rendezvous at(group, place, options.timeout);
  member_card own{this_host(), resources.exchange.process(), resources.exchange.address()};
  auto cards = parse_cards(at.all_gather("card", to_string(own)));
  std::string obstacle;
  auto peers = meet_all(cards, at, resources, obstacle);
  at.watch(peers);
  // Either all reach into each other's memory or none does.
  for (const auto& verdict : at.all_gather("obstacle", obstacle))
    if (!verdict.empty())
      throw collective_error(collective_failure::transport, group.name, 0, {},
                             "group " + group.name + " has members that do not share memory (" + verdict +
                                 "): groups between hosts need a network backend");
  auto memory = share_board(at, peers, resources.heap);
  auto backend = std::make_unique<host_backend>(group, resources, std::move(peers), std::move(memory));
  return std::make_unique<communicator>(group, std::move(backend), options);
}

}  // namespace troupe
