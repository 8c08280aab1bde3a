#include "troupe/inspector/findings/mailbox_growth.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#include "troupe/inspector/views/names.hpp"

namespace troupe::actors::inspector {
namespace {

constexpr std::int64_t least_growth_ms = 1000;
constexpr std::uint64_t least_growth = 10;
constexpr double least_wait_s = 1;
constexpr double least_wait_at_first_s = 10;

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
}

/// Longer than this no message waits in a healthy job.
double longest_wait_s(const job_view& view) {
  return view.slowest_step_s > 0 ? std::max(least_wait_s, view.slowest_step_s) : least_wait_at_first_s;
}

}  // namespace

void mailbox_growth::observe(const job_view& view) {
  std::erase_if(known_, [&](const auto& entry) {
    auto process = view.processes.find(entry.first.rank);
    return process == view.processes.end() || process->second.report.incarnation != entry.first.incarnation;
  });
  for (const auto& [rank, process] : view.processes) {
    auto incarnation = process.report.incarnation;
    observe_actor({rank, incarnation, {}}, process.at_ms, process.report.supervisor);
    for (const auto& one : process.report.children)
      observe_actor({rank, incarnation, one.id}, process.at_ms, one.counts);
  }
}

void mailbox_growth::observe_actor(const actor& one, std::int64_t at_ms,
                                   const actors::actor::actor_counts& counts) {
  auto& grown = known_[one];
  if (grown.at_ms == at_ms) return;
  auto depth = counts.mailbox_depth;
  bool goes_on = grown.at_ms != 0 && depth > 0 && depth >= grown.newest;
  if (!goes_on) grown = {at_ms, at_ms, depth, depth, {}};
  grown.at_ms = at_ms;
  grown.newest = depth;
  if (depth > 0) grown.counts = counts;
}

std::vector<finding> mailbox_growth::find(const job_view& view) const {
  std::vector<finding> found;
  auto longest = longest_wait_s(view);
  for (const auto& [one, grown] : known_)
    if (grown.at_ms - grown.since_ms >= least_growth_ms && grown.newest - grown.first >= least_growth &&
        grown.counts.oldest_s >= longest)
      found.push_back(finding_of(view, one, grown));
  return found;
}

finding mailbox_growth::finding_of(const job_view& view, const actor& one, const growth& grown) {
  const auto& process = view.processes.at(one.rank).report;
  finding made;
  made.kind = finding_kind::growing_mailbox;
  made.rank = one.rank;
  made.actor = one.child ? actor_id(process, *one.child) : supervisor_id(process);
  made.since_ms = grown.since_ms;
  const auto& counts = grown.counts;
  made.text = "the mailbox of " + made.actor + " has grown from " + std::to_string(grown.first) + " to " +
              std::to_string(grown.newest) + " messages in " +
              seconds_text(static_cast<double>(grown.at_ms - grown.since_ms) / 1000) +
              "; the oldest has waited for " + seconds_text(counts.oldest_s);
  if (counts.running_s >= least_wait_s)
    made.text += ", and a handler has run for " + seconds_text(counts.running_s);
  return made;
}

}  // namespace troupe::actors::inspector
