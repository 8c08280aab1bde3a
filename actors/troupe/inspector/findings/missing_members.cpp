#include "troupe/inspector/findings/missing_members.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "troupe/inspector/views/names.hpp"

namespace troupe::actors::inspector {
namespace {

/// A group as its members report it.
struct reported_group {
  std::map<int, const collective::collective_position*> members;  ///< by rank; those that know it
  const collective::collective_position* newest = nullptr;        ///< in the call of the highest number
};

std::string list_of(const std::vector<int>& ranks) {
  std::string text;
  for (auto rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

std::string where_is(const process_view* process, const collective::collective_position* position) {
  if (!process) return "has not reported yet";
  if (process->is_suspended) return "is suspended";
  if (!position) return "does not have the group yet";
  if (position->sequence == 0) return "has made no call of the group yet";
  auto call = "call " + std::to_string(position->sequence) + ", " + position->call;
  return (position->is_in_call ? "is in " : "has done nothing since ") + call;
}

const process_view* node_of(const job_view& view, int rank) {
  auto found = view.processes.find(rank);
  return found == view.processes.end() ? nullptr : &found->second;
}

/// Seconds for which the call has lasted by now.
double for_s(const job_view& view, int rank, const collective::collective_position& position,
             std::int64_t now_ms) {
  return position.for_s +
         static_cast<double>(std::max<std::int64_t>(0, now_ms - view.processes.at(rank).at_ms)) / 1000;
}

std::vector<finding> find_in(const job_view& view, const reported_group& group, std::int64_t now_ms) {
  const auto& call = *group.newest;
  std::vector<int> inside, missing;
  double waited_s = 0, longest_s = 0;
  for (auto rank : call.ranks) {
    auto member = group.members.find(rank);
    const auto* at = member == group.members.end() ? nullptr : member->second;
    if (at) longest_s = std::max(longest_s, at->longest_s);
    if (!at || at->sequence < call.sequence) missing.push_back(rank);
    if (at && at->sequence == call.sequence && at->is_in_call) {
      inside.push_back(rank);
      waited_s = std::max(waited_s, for_s(view, rank, *at, now_ms));
    }
  }
  std::vector<finding> found;
  if (waited_s < std::max(1.0, 3 * longest_s)) return found;
  for (auto rank : missing) {
    const auto* process = node_of(view, rank);
    auto member = group.members.find(rank);
    finding one;
    one.kind = finding_kind::missing_in_collective;
    one.rank = rank;
    if (process) one.actor = supervisor_id(process->report);
    one.text = "rank " + std::to_string(rank) + " has not entered call " + std::to_string(call.sequence) +
               " of group " + call.group + ", " + call.call + ", in which " + list_of(inside) +
               (inside.size() == 1 ? " waits; it " : " wait; it ") +
               where_is(process, member == group.members.end() ? nullptr : member->second);
    one.since_ms = now_ms - static_cast<std::int64_t>(waited_s * 1000);
    found.push_back(std::move(one));
  }
  return found;
}

}  // namespace

std::vector<finding> missing_members(const job_view& view, std::int64_t now_ms) {
  std::map<std::string, reported_group> groups;
  for (const auto& [rank, process] : view.processes)
    for (const auto& at : process.report.collectives) {
      auto& group = groups[at.group];
      group.members[rank] = &at;
      if (at.is_in_call && (!group.newest || at.sequence > group.newest->sequence)) group.newest = &at;
    }
  std::vector<finding> all;
  for (const auto& [name, group] : groups)
    if (group.newest)
      for (auto& one : find_in(view, group, now_ms)) all.push_back(std::move(one));
  return all;
}

}  // namespace troupe::actors::inspector
