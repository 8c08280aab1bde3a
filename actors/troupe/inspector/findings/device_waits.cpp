#include "troupe/inspector/findings/device_waits.hpp"

#include <algorithm>

#include "troupe/inspector/views/names.hpp"
#include "troupe/messages/position_in_call.hpp"

namespace troupe::actors::inspector {
namespace {

/// After a longer time between two reports of a process, what it did meanwhile is not known: it was
/// suspended, or the machine was. Its waits begin anew.
constexpr std::int64_t longest_gap_ms = 1500;

double seconds_between(std::int64_t since_ms, std::int64_t now_ms) {
  return static_cast<double>(std::max<std::int64_t>(0, now_ms - since_ms)) / 1000;
}

bool is_watched(const job_view& view) {
  if (!view.scheduler || !view.scheduler->running) return false;
  return view.scheduler->pause.is_paused == 0 && view.scheduler->generation == view.generation;
}

finding finding_of(const schedule::stall& chain, const job_view& view) {
  finding found;
  found.kind = finding_kind::stuck_rank;
  found.device = chain.device;
  const auto& hosts = view.scheduler->hosts;
  if (chain.device < hosts.num_devices()) found.rank = hosts.member_of({chain.device});
  bool is_loader =
      chain.cause == schedule::stall_cause::loader || chain.cause == schedule::stall_cause::lost_samples;
  if (auto shown = view.processes.find(found.rank); shown != view.processes.end())
    found.actor =
        actor_id(shown->second.report, is_loader ? actor::child_id{actor::child_role::loader}
                                                 : actor::child_id{actor::child_role::device, chain.device});
  found.text = chain.problem + ": " + chain.text;
  return found;
}

}  // namespace

double stuck_limit_s(double slowest_step_s, bool has_stepped) {
  // Before the first step nothing is known: programs compile, data sets are read, memory is touched.
  if (slowest_step_s <= 0) return 30;
  return has_stepped ? std::max(1.0, 4 * slowest_step_s) : std::max(5.0, 10 * slowest_step_s);
}

void device_waits::observe(const job_view& view) {
  if (view.generation != generation_) {
    generation_ = view.generation;
    processes_.clear();
    has_stepped_ = false;
    first_step_ = view.scheduler ? view.scheduler->step : 0;
  }
  if (view.scheduler && view.scheduler->generation == generation_)
    has_stepped_ = has_stepped_ || view.scheduler->step > first_step_;
  if (!is_watched(view)) return processes_.clear();
  for (const auto& [rank, shown] : view.processes) {
    auto& known = processes_[rank];
    if (known.reported_ms == shown.at_ms) continue;
    bool goes_on = known.incarnation == shown.report.incarnation && known.reported_ms > 0 &&
                   shown.at_ms - known.reported_ms <= longest_gap_ms;
    process next{shown.report.incarnation, shown.at_ms, shown.report.loader_changes, shown.at_ms, {}};
    if (goes_on && known.loader_changes == next.loader_changes) next.loader_since_ms = known.loader_since_ms;
    for (const auto& device : shown.report.devices) {
      auto before = known.devices.find(device.device);
      bool stands = goes_on && before != known.devices.end() && before->second.position == device.position;
      next.devices[device.device] = {device.position, stands ? before->second.since_ms : shown.at_ms};
    }
    known = std::move(next);
  }
}

/// Processes that have not reported for a while are where they were.
schedule::job_positions device_waits::positions(const job_view& view, std::int64_t now_ms) const {
  const auto& report = *view.scheduler;
  schedule::job_positions seen;
  seen.devices.resize(static_cast<std::size_t>(report.running->num_job_devices()));
  seen.loaders.resize(seen.devices.size());
  for (const auto& [rank, process] : processes_)
    for (const auto& [device, at] : process.devices) {
      if (device >= seen.devices.size()) continue;
      auto num_actions = report.running->actions_of(static_cast<int>(device)).size();
      messages::device_progress told{device, at.position, seconds_between(at.since_ms, now_ms)};
      seen.devices[device] = position_in_call(told, report.activity, num_actions);
      seen.loaders[device] = {process.loader_changes % 2 != 0,
                              seconds_between(process.loader_since_ms, now_ms)};
    }
  seen.running = *report.running;
  return seen;
}

std::vector<schedule::stall> device_waits::chains(const job_view& view, std::int64_t now_ms) const {
  if (!is_watched(view)) return {};
  return wait_chains(positions(view, now_ms));
}

double device_waits::longest_s(std::int64_t now_ms) const {
  double longest = 0;
  for (const auto& [rank, process] : processes_)
    for (const auto& [device, at] : process.devices)
      if (at.position.activity != schedule::device_activity::idle)
        longest = std::max(longest, seconds_between(at.since_ms, now_ms));
  return longest;
}

std::vector<finding> device_waits::find(const job_view& view, std::int64_t now_ms) const {
  auto limit = stuck_limit_s(view.slowest_step_s, has_stepped_);
  // A plan may be large: chains are looked for only where something has taken long.
  if (!is_watched(view) || longest_s(now_ms) < limit) return {};
  std::vector<finding> all;
  for (const auto& chain : chains(view, now_ms)) {
    if (chain.for_s < limit || chain.cause == schedule::stall_cause::missing_credit) continue;
    auto found = finding_of(chain, view);
    found.since_ms = now_ms - static_cast<std::int64_t>(chain.for_s * 1000);
    auto known = std::ranges::find_if(all, [&](const finding& one) { return one.is_same_as(found); });
    if (known == all.end())
      all.push_back(std::move(found));
    else if (found.text.size() > known->text.size())
      *known = std::move(found);
  }
  return all;
}

}  // namespace troupe::actors::inspector
