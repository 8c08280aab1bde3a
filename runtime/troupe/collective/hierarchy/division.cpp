#include "troupe/collective/hierarchy/division.hpp"

#include <algorithm>

namespace troupe::hierarchy {
namespace {

/// Which of `num_shares` shares of `total` elements holds element `at`.
int holder(std::int64_t at, std::int64_t total, std::size_t element_bytes, int num_shares) {
  int i = 0;
  while (i + 1 < num_shares && share_of(total, element_bytes, num_shares, i + 1).first <= at) ++i;
  return i;
}

}  // namespace

division::division(const placement& where, const std::vector<share>& takes, const options& wanted)
    : stretches_(static_cast<std::size_t>(where.num_members())) {
  for (int host = 0; host < where.num_hosts(); ++host) divide(where, takes, host, wanted);
}

/// What the members of one host take, one after the other, is cut where another host's shares of it begin.
void division::divide(const placement& where, const std::vector<share>& takes, int host,
                      const options& wanted) {
  const auto& takers = where.members_on(host);
  std::int64_t total = 0;
  for (int taker : takers) total += takes[static_cast<std::size_t>(taker)].count;
  auto longest =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(wanted.longest_bytes / wanted.element_bytes));
  std::int64_t begin = 0;
  for (int taker : takers) {
    const auto& own = takes[static_cast<std::size_t>(taker)];
    for (std::int64_t at = 0; at < own.count;) {
      auto end = std::min(own.count, at + longest);
      stretch next;
      for (int other = 0; other < where.num_hosts(); ++other) {
        const auto& there = where.members_on(other);
        auto place = where.place_of(taker);
        if (there.size() != takers.size()) {
          auto num_shares = static_cast<int>(there.size());
          place = holder(begin + at, total, wanted.element_bytes, num_shares);
          auto held = share_of(total, wanted.element_bytes, num_shares, place);
          end = std::min(end, held.first + held.count - begin);
        }
        next.partners.push_back(there[static_cast<std::size_t>(place)]);
      }
      next.elements = {own.first + at, end - at};
      stretches_[static_cast<std::size_t>(taker)].push_back(std::move(next));
      at = end;
    }
    begin += own.count;
  }
}

std::size_t division::most() const {
  std::size_t most = 0;
  for (const auto& each : stretches_) most = std::max(most, each.size());
  return most;
}

std::vector<share> shares_by_host(const placement& where, const std::vector<int>& hosts, std::int64_t count,
                                  std::size_t element_bytes) {
  std::vector<share> shares(static_cast<std::size_t>(where.num_members()));
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    auto of_host = share_of(count, element_bytes, static_cast<int>(hosts.size()), static_cast<int>(i));
    const auto& there = where.members_on(hosts[i]);
    for (std::size_t place = 0; place < there.size(); ++place) {
      auto own =
          share_of(of_host.count, element_bytes, static_cast<int>(there.size()), static_cast<int>(place));
      shares[static_cast<std::size_t>(there[place])] = {of_host.first + own.first, own.count};
    }
  }
  return shares;
}

}  // namespace troupe::hierarchy
