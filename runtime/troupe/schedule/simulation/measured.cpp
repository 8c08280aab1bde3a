#include "troupe/schedule/simulation/measured.hpp"

#include <algorithm>
#include <limits>

#include "troupe/error/errors.hpp"

namespace troupe::schedule {
namespace {

void check_order(const std::vector<timed_action>& device) {
  for (std::size_t i = 0; i < device.size(); ++i) {
    if (!(device[i].begin <= device[i].end))
      throw_invalid("measured_timeline", "actions that end after they begin", to_string(device[i].op));
    if (i > 0 && device[i].begin < device[i - 1].end)
      throw_invalid("measured_timeline", "actions one after the other",
                    to_string(device[i].op) + " before the end of " + to_string(device[i - 1].op));
  }
}

double earliest_begin(const std::vector<std::vector<timed_action>>& devices) {
  double earliest = std::numeric_limits<double>::infinity();
  for (const auto& device : devices)
    if (!device.empty()) earliest = std::min(earliest, device.front().begin);
  return earliest;
}

template <class DurationOf>
step_summary summarize_with(const timeline& ran, DurationOf duration) {
  step_summary summary{.span = ran.makespan, .busy = {}, .idle = {}, .bubble_fraction = 0};
  double all_idle = 0;
  for (const auto& device : ran.devices) {
    double busy = 0;
    for (const auto& done : device) busy += duration(done);
    summary.busy.push_back(busy);
    summary.idle.push_back(ran.makespan - busy);
    all_idle += summary.idle.back();
  }
  if (ran.makespan > 0)
    summary.bubble_fraction = all_idle / (ran.makespan * static_cast<double>(ran.devices.size()));
  return summary;
}

}  // namespace

timeline measured_timeline(std::vector<std::vector<timed_action>> devices) {
  for (const auto& device : devices) check_order(device);
  double start = earliest_begin(devices);
  timeline ran;
  ran.devices = std::move(devices);
  for (auto& device : ran.devices) {
    for (auto& done : device) {
      done.begin -= start;
      done.end -= start;
      ran.makespan = std::max(ran.makespan, done.end);
    }
    ran.peak_activations.push_back(peak_activations(device));
  }
  ran.idle = summarize(ran).idle;
  return ran;
}

step_summary summarize(const timeline& ran) {
  return summarize_with(ran, [](const timed_action& done) { return done.end - done.begin; });
}

step_summary summarize(const timeline& ran, const action_costs& nominal) {
  return summarize_with(ran,
                        [&nominal](const timed_action& done) { return duration_of(done.op.kind, nominal); });
}

}  // namespace troupe::schedule
