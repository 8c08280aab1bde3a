#include "troupe/collective/hierarchy/host_messages.hpp"

namespace troupe::hierarchy {
namespace {

using network::carried;

/// The members of another host that this one serves.
std::vector<int> served_on(const site& at, int host) {
  std::vector<int> served;
  for (int member : at.where.members_on(host))
    if (at.where.server_of(member, at.host()) == at.member()) served.push_back(member);
  return served;
}

}  // namespace

algorithm exchange_messages(site& at, host_messages& said) {
  bool speaks = said.speaker < 0 || said.speaker == at.host();
  bool hears = said.hearer < 0 || said.hearer == at.member();
  for (int host = 0; host < at.where.num_hosts(); ++host) {
    if (host == at.host()) continue;
    if (hears && (said.speaker < 0 || said.speaker == host))
      at.far.receive(at.where.server_of(at.member(), host), carried::inputs, 0,
                     said.of_host[static_cast<std::size_t>(host)]);
    if (!speaks) continue;
    for (int member : served_on(at, host))
      if (said.hearer < 0 || said.hearer == member) at.far.send(member, carried::inputs, 0, said.own);
  }
  co_await until([&] { return at.far.all_done(); });
}

algorithm every_host_has_come(site& at) {
  int num_hosts = at.where.num_hosts();
  std::uint32_t round = 0;
  for (int distance = 1; distance < num_hosts; distance *= 2, ++round) {
    for (int member : served_on(at, (at.host() + distance) % num_hosts))
      at.far.send(member, carried::arrivals, round, {});
    auto before = (at.host() + num_hosts - distance) % num_hosts;
    auto came = at.far.receive(at.where.server_of(at.member(), before), carried::arrivals, round, {});
    co_await until([&] { return came->is_done(); });
  }
}

}  // namespace troupe::hierarchy
