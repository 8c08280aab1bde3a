#include "troupe/schedule/insert_gathers.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace troupe::schedule {
namespace {

/// Passes of one stage for which it is gathered once: the U is before pass `begin` of the device, the S after
/// pass `last`.
struct gathered_run {
  int stage = 0;
  std::size_t begin = 0, last = 0;
};

/// The passes of a device's list that read parameters.
std::vector<std::size_t> passes_in(const std::vector<action>& device) {
  std::vector<std::size_t> found;
  for (std::size_t at = 0; at < device.size(); ++at)
    if (reads_parameters(device[at].kind)) found.push_back(at);
  return found;
}

/// In the order of their first passes.
std::vector<gathered_run> runs_of(const std::vector<action>& device, const std::vector<std::size_t>& passes,
                                  const gather_options& options) {
  std::vector<gathered_run> runs;
  std::map<int, std::size_t> newest;  // [stage] run
  auto ahead = static_cast<std::size_t>(options.ahead);
  for (std::size_t pass = 0; pass < passes.size(); ++pass) {
    auto stage = device[passes[pass]].stage;
    auto begin = pass - std::min(pass, ahead);
    auto found = newest.find(stage);
    // What would be gathered again at once is not let go of.
    if (found != newest.end() &&
        (options.reshards == reshard_point::step || begin <= runs[found->second].last + 1)) {
      runs[found->second].last = pass;
    } else {
      newest[stage] = runs.size();
      runs.push_back({stage, begin, pass});
    }
  }
  return runs;
}

/// Every stage of the device has neither U nor S, or is left out.
void insert_into(std::vector<action>& device, const std::set<int>& left_out, const gather_options& options) {
  auto passes = passes_in(device);
  std::vector<std::vector<action>> before(device.size()), after(device.size());
  for (const auto& run : runs_of(device, passes, options)) {
    if (left_out.contains(run.stage)) continue;
    before[passes[run.begin]].push_back({run.stage, action_kind::unshard, 0});
    after[passes[run.last]].push_back({run.stage, action_kind::reshard, 0});
  }
  std::vector<action> result;
  for (std::size_t at = 0; at < device.size(); ++at) {
    std::ranges::copy(before[at], std::back_inserter(result));
    result.push_back(device[at]);
    std::ranges::copy(after[at], std::back_inserter(result));
  }
  device = std::move(result);
}

/// Behind the last pass of each stage that is whole at the end.
void free_at_the_end(std::vector<action>& device) {
  std::map<int, action> last;  // [stage] U or S
  for (const auto& op : device)
    if (is_of_storage(op.kind)) last[op.stage] = op;
  for (const auto& [stage, op] : last) {
    if (op.kind == action_kind::reshard) continue;
    auto reads = [stage = stage](const action& each) {
      return each.stage == stage && reads_parameters(each.kind);
    };
    auto pass = std::ranges::find_if(device.rbegin(), device.rend(), reads);
    if (pass != device.rend()) device.insert(pass.base(), {stage, action_kind::reshard, 0, op.axis});
  }
}

/// In the order in which the stages begin.
void begin_with_gathers(std::vector<action>& device, const std::set<int>& left_out) {
  std::vector<action> unshards;
  for (const auto& op : device) {
    action wanted{op.stage, action_kind::unshard, 0};
    if (!left_out.contains(op.stage) && std::ranges::find(unshards, wanted) == unshards.end())
      unshards.push_back(wanted);
  }
  device.insert(device.begin(), unshards.begin(), unshards.end());
}

}  // namespace

void insert_gathers(plan& made, const gather_options& options) {
  made.gathers = {};
  if (made.mesh.num_replicas == 1 || !options.gathers) return;
  for (auto& device : made.devices) {
    std::set<int> own;  // stages whose plan says when
    for (const auto& op : device)
      if (is_of_storage(op.kind)) own.insert(op.stage);
    if (std::ranges::any_of(device, [&](const action& op) { return !own.contains(op.stage); }))
      made.gathers = options;
    if (options.frees) {
      insert_into(device, own, options);
      free_at_the_end(device);
    } else {
      begin_with_gathers(device, own);
    }
  }
}

}  // namespace troupe::schedule
