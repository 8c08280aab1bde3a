#include "troupe/collective/ucx/ucx_group.hpp"

#include <algorithm>

#include "troupe/collective/ucx/host_backend.hpp"
#include "troupe/collective/ucx/mixed_backend.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

void require_own_processes(const std::vector<member_card>& cards, int member) {
  auto own = cards[static_cast<std::size_t>(member)].process;
  if (std::ranges::count(cards, own, &member_card::process) > 1)
    throw_invalid("make_ucx_group", "one member in each process", "two (use make_local_group for threads)");
}

/// Members would wait for messages of different sizes.
void require_same_sizes(const std::vector<member_card>& cards, const group_description& group) {
  for (std::size_t i = 1; i < cards.size(); ++i)
    if (cards[i].sizes != cards[0].sizes)
      throw bad_input("group " + group.name + ": --network-sizes is " + cards[0].sizes + " on rank " +
                      std::to_string(group.ranks[0]) + " and " + cards[i].sizes + " on rank " +
                      std::to_string(group.ranks[i]) + ": start all processes with the same");
}

std::unique_ptr<collective_backend> make_backend(rendezvous& at, const std::vector<member_card>& cards,
                                                 ucx_group_resources& resources) {
  std::vector<std::string> hosts;
  for (const auto& card : cards) hosts.push_back(card.host);
  hierarchy::placement where(hosts);
  bool is_alone = where.num_hosts() == where.num_members() && where.num_members() > 1;
  if (is_alone || resources.network.options().path == group_path::network)
    return std::make_unique<network_backend>(at, resources.network);
  auto met = meet_neighbours(at, cards, resources);
  if (where.num_hosts() == 1)
    return std::make_unique<host_backend>(at.group(), resources, std::move(met.peers),
                                          std::move(met.board_memory));
  return std::make_unique<mixed_backend>(at, resources, std::move(where), std::move(met));
}

}  // namespace

std::unique_ptr<communicator> make_ucx_group(const group_description& group, store& place,
                                             ucx_group_resources& resources,
                                             const communicator_options& options) {
  rendezvous at(group, place, options.timeout);
  const auto& options_here = resources.network.options();
  member_card own{options_here.host.empty() ? this_host() : options_here.host, resources.exchange.process(),
                  resources.exchange.address(), to_string(options_here.sizes)};
  auto cards = parse_cards(at.all_gather("card", to_string(own)));
  require_own_processes(cards, at.member());
  require_same_sizes(cards, group);
  auto backend = make_backend(at, cards, resources);
  return std::make_unique<communicator>(group, std::move(backend), options);
}

}  // namespace troupe
