#include "troupe/collective/ucx/connect_members.hpp"

#include <poll.h>

#include <cstring>
#include <random>

namespace troupe {
namespace {

using clock = std::chrono::steady_clock;

constexpr int milliseconds_between_looks = 5;

/// Who has not been heard of, or nothing.
std::string unreached(const ucx_exchange& own, const rendezvous& at, const std::string& interface) {
  std::string missing;
  for (int i = 0; i < at.group().size(); ++i) {
    const auto& heard = own.heard(i);
    if (i == at.member() || (heard.has_come && heard.lost_cause.empty())) continue;
    missing += "rank " + std::to_string(at.rank_of(i)) + " from rank " +
               std::to_string(at.rank_of(at.member())) + " over " + interface +
               (heard.lost_cause.empty() ? "" : " (" + heard.lost_cause + ")") + "; ";
  }
  return missing;
}

std::string await_everyone(ucx_exchange& own, const rendezvous& at, const std::string& interface) {
  std::string missing;
  while (true) {
    own.progress();
    missing = unreached(own, at, interface);
    if (missing.empty() || clock::now() >= at.half_time()) break;
    pollfd something{own.connections().event_fd(), POLLIN, 0};
    if (own.connections().arm()) ::poll(&something, 1, milliseconds_between_looks);
  }
  own.connections().flush(at.half_time());
  return missing;
}

}  // namespace

void connect_members(ucx_exchange& own, rendezvous& at, const std::string& interface) {
  std::uint64_t number = (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  auto address = own.address();
  std::string card(sizeof number, '\0');
  std::memcpy(card.data(), &number, sizeof number);
  card.append(reinterpret_cast<const char*>(address.data()), address.size());
  auto cards = at.all_gather("network address", card);
  std::uint64_t group_number = 0;
  for (auto& each : cards) {
    if (each.size() <= sizeof number) throw std::runtime_error("a member has no network address");
    std::memcpy(&number, each.data(), sizeof number);
    group_number ^= number;
    each.erase(0, sizeof number);
  }
  own.connect(group_number, cards);
  for (const auto& verdict : at.all_gather("met", await_everyone(own, at, interface)))
    if (!verdict.empty())
      throw collective_error(
          collective_failure::transport, at.group().name, 0, {},
          "group " + at.group().name + " has members that cannot reach each other: " + verdict);
}

}  // namespace troupe
