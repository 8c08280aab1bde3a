#include "troupe/collective/ucx/ucx_group.hpp"

#include <algorithm>

#include "troupe/collective/ucx/host_backend.hpp"
#include "troupe/collective/ucx/member_card.hpp"
#include "troupe/collective/ucx/network_backend.hpp"
#include "troupe/collective/ucx/rendezvous.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

using peer_list = std::vector<std::shared_ptr<host_peer>>;

/// Connections to all other members, on this host; empty if there is one that cannot be reached from here,
/// with the reason in `obstacle`.
peer_list meet_all(const std::vector<member_card>& cards, rendezvous& at, ucx_group_resources& resources,
                   std::string& obstacle) {
  peer_list peers(cards.size());
  for (std::size_t i = 0; i < cards.size(); ++i) {
    if (i == static_cast<std::size_t>(at.member())) continue;
    try {
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

std::unique_ptr<collective_backend> make_host_backend(rendezvous& at, const std::vector<member_card>& cards,
                                                      ucx_group_resources& resources) {
  std::string obstacle;
  auto peers = meet_all(cards, at, resources, obstacle);
  at.watch(peers);
  // Either all reach into each other's memory or none does.
  for (const auto& verdict : at.all_gather("obstacle", obstacle))
    if (!verdict.empty())
      throw collective_error(
          collective_failure::transport, at.group().name, 0, {},
          "group " + at.group().name + " has members of one host that do not share memory (" + verdict + ")");
  auto memory = share_board(at, peers, resources.heap);
  return std::make_unique<host_backend>(at.group(), resources, std::move(peers), std::move(memory));
}

void require_own_processes(const std::vector<member_card>& cards, int member) {
  auto own = cards[static_cast<std::size_t>(member)].process;
  if (std::ranges::count(cards, own, &member_card::process) > 1)
    throw_invalid("make_ucx_group", "one member in each process", "two (use make_local_group for threads)");
}

}  // namespace

std::unique_ptr<communicator> make_ucx_group(const group_description& group, store& place,
                                             ucx_group_resources& resources,
                                             const communicator_options& options) {
  rendezvous at(group, place, options.timeout);
  member_card own{this_host(), resources.exchange.process(), resources.exchange.address()};
  auto cards = parse_cards(at.all_gather("card", to_string(own)));
  require_own_processes(cards, at.member());
  bool is_one_host = std::ranges::all_of(cards, [&](const auto& card) { return card.is_on_host_of(own); });
  auto backend = is_one_host && resources.network.options().path == group_path::nearest
                     ? make_host_backend(at, cards, resources)
                     : make_network_backend(at, resources.network);
  return std::make_unique<communicator>(group, std::move(backend), options);
}

}  // namespace troupe
