#include "troupe/collective/net/exchange/ended_groups.hpp"

#include <algorithm>
#include <utility>

namespace troupe::collective {

void ended_groups::add(std::uint64_t group, std::map<int, member> others, bool is_aborted) {
  if (!others.empty()) groups_[group] = {std::move(others), is_aborted};
}

bool ended_groups::on_message(const net::message_header& header, void* descriptor) {
  auto& others = groups_.at(header.group).others;
  auto from = others.find(header.from);
  if (from == others.end()) return false;
  if (header.kind == net::message_kind::failure || header.kind == net::message_kind::leaving) {
    auto unwanted = std::move(from->second.unwanted);
    others.erase(from);
    if (others.empty()) groups_.erase(header.group);
    for (void* each : unwanted) release_(each);
    return false;
  }
  if (descriptor) from->second.unwanted.push_back(descriptor);
  return descriptor != nullptr;
}

void ended_groups::on_lost(int connection) {
  for (auto& [number, group] : groups_)
    std::erase_if(group.others, [&](const auto& each) { return each.second.connection == connection; });
  std::erase_if(groups_, [](const auto& each) { return each.second.others.empty(); });
}

bool ended_groups::has_aborted() const {
  return std::ranges::any_of(groups_, [](const auto& each) { return each.second.is_aborted; });
}

}  // namespace troupe::collective
