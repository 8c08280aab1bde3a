#include "troupe/collective/hierarchy/host_topology.hpp"

#include <algorithm>

namespace troupe::collective::hierarchy {

host_topology::host_topology(const std::vector<std::string>& hosts) {
  std::vector<std::string> known;
  for (int member = 0; member < static_cast<int>(hosts.size()); ++member) {
    const auto& name = hosts[static_cast<std::size_t>(member)];
    auto host = std::ranges::find(known, name) - known.begin();
    if (host == static_cast<std::ptrdiff_t>(known.size())) {
      known.push_back(name);
      members_.emplace_back();
    }
    auto& members = members_[static_cast<std::size_t>(host)];
    hosts_.push_back(static_cast<int>(host));
    local_indices_.push_back(static_cast<int>(members.size()));
    members.push_back(member);
  }
  for (const auto& members : members_) nodes_.push_back(nodes_within(members, num_members()));
}

int host_topology::sender_for(int member, int host) const {
  const auto& members = members_on(host);
  return members[static_cast<std::size_t>(local_index_of(member)) % members.size()];
}

namespace {

/// Which of `num_ranges` equal ranges of `total` elements contains `element`.
int range_containing(std::int64_t element, std::int64_t total, std::size_t element_bytes, int num_ranges) {
  int i = 0;
  while (i + 1 < num_ranges && range_of_member(total, element_bytes, num_ranges, i + 1).first <= element) ++i;
  return i;
}

}  // namespace

chunk_plan::chunk_plan(const host_topology& topology, const std::vector<element_range>& owned,
                       const options& wanted)
    : chunks_(static_cast<std::size_t>(topology.num_members())) {
  for (int host = 0; host < topology.num_hosts(); ++host) plan_host(topology, owned, host, wanted);
}

/// Takes what the owners of `host` own as one row of elements. Another host with as many members lets member
/// i serve owner i; any other host divides the row evenly among its members. A chunk ends where it reaches
/// the maximal size, or where on some host the next member begins to serve.
void chunk_plan::plan_host(const host_topology& topology, const std::vector<element_range>& owned, int host,
                           const options& wanted) {
  const auto& owners = topology.members_on(host);
  std::int64_t total = 0;
  for (int owner : owners) total += owned[static_cast<std::size_t>(owner)].count;
  auto max_elements =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(wanted.max_bytes / wanted.element_bytes));
  std::int64_t row_begin = 0;
  for (int owner : owners) {
    const auto& own = owned[static_cast<std::size_t>(owner)];
    for (std::int64_t begin = 0; begin < own.count;) {
      auto end = std::min(own.count, begin + max_elements);
      chunk next;
      for (int other = 0; other < topology.num_hosts(); ++other) {
        const auto& members = topology.members_on(other);
        auto index = topology.local_index_of(owner);
        if (members.size() != owners.size()) {
          auto num_ranges = static_cast<int>(members.size());
          index = range_containing(row_begin + begin, total, wanted.element_bytes, num_ranges);
          auto served = range_of_member(total, wanted.element_bytes, num_ranges, index);
          end = std::min(end, served.first + served.count - row_begin);
        }
        next.partners.push_back(members[static_cast<std::size_t>(index)]);
      }
      next.elements = {own.first + begin, end - begin};
      chunks_[static_cast<std::size_t>(owner)].push_back(std::move(next));
      begin = end;
    }
    row_begin += own.count;
  }
}

std::size_t chunk_plan::max_chunks() const {
  std::size_t most = 0;
  for (const auto& each : chunks_) most = std::max(most, each.size());
  return most;
}

std::vector<element_range> ranges_by_host(const host_topology& topology, const std::vector<int>& hosts,
                                          std::int64_t count, std::size_t element_bytes) {
  std::vector<element_range> ranges(static_cast<std::size_t>(topology.num_members()));
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    auto of_host = range_of_member(count, element_bytes, static_cast<int>(hosts.size()), static_cast<int>(i));
    const auto& members = topology.members_on(hosts[i]);
    for (std::size_t index = 0; index < members.size(); ++index) {
      auto own = range_of_member(of_host.count, element_bytes, static_cast<int>(members.size()),
                                 static_cast<int>(index));
      ranges[static_cast<std::size_t>(members[index])] = {of_host.first + own.first, own.count};
    }
  }
  return ranges;
}

}  // namespace troupe::collective::hierarchy
