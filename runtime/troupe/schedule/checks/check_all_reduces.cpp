#include "troupe/schedule/checks/plan_checks.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>

namespace troupe::schedule {
namespace {

using findings = std::vector<std::string>;

/// The optimizer step that an action adds to, reduces or applies; none: there is no such step.
std::optional<int> step_of(const plan& checked, const action& op) {
  auto of_one = is_of_microbatch(op)                      ? checked.microbatches_per_step()
                : op.kind == action_kind::reduce_gradient ? checked.reductions_per_step()
                                                          : 1;
  if (of_one == 0 || op.microbatch < 0) return {};
  auto step = op.microbatch / of_one;
  return step < checked.flush_every ? std::optional(step) : std::nullopt;
}

bool completes_gradient(const action& op) {
  return op.kind == action_kind::backward || op.kind == action_kind::weight_gradient;
}

/// Why an action may not come after the G of its step; empty: it may.
std::string objection_after(const plan& checked, const action& op) {
  if (checked.averages_weights)
    return op.kind == action_kind::apply ? "changes the weights that it averages" : "";
  if (completes_gradient(op)) return "adds to the gradients that it sums";
  bool is_tied = op.kind == action_kind::reduce_gradient &&
                 op.microbatch % checked.reductions_per_step() < checked.reductions_before_all_reduce;
  return is_tied ? "each replica adds up tied weights before" : "";
}

/// Why an action may not come before the G of its step; empty: it may.
std::string objection_before(const plan& checked, const action& op) {
  if (checked.averages_weights) return {};
  if (op.kind == action_kind::apply) return "uses the gradients of all replicas";
  bool is_of_sums = op.kind == action_kind::reduce_gradient &&
                    op.microbatch % checked.reductions_per_step() >= checked.reductions_before_all_reduce;
  return is_of_sums ? "reduces what it sums" : "";
}

/// `sums`: [stage, step] how many Gs there are in the plan.
void check_order(const plan& checked, const std::vector<action>& device,
                 const std::map<std::pair<int, int>, int>& sums, findings& found) {
  std::set<std::pair<int, int>> done;  // [stage, step]
  for (const auto& op : device) {
    auto step = step_of(checked, op);
    if (!step) continue;
    std::pair which(op.stage, *step);
    auto planned = sums.find(which);
    if (op.kind == action_kind::all_reduce) done.insert(which);
    if (op.kind == action_kind::all_reduce || planned == sums.end() || planned->second == 0) continue;
    bool is_after = done.contains(which);
    auto why = is_after ? objection_after(checked, op) : objection_before(checked, op);
    if (!why.empty())
      found.push_back(to_string(op) + " comes " + (is_after ? "after " : "before ") +
                      to_string(action{op.stage, action_kind::all_reduce, *step}) + ", but " + why);
  }
}

}  // namespace

findings check_all_reduces(const plan& checked) {
  findings found;
  std::map<std::pair<int, int>, int> sums;  // [stage, step] how many Gs
  for (const auto& device : checked.devices)
    for (const auto& op : device) {
      if (op.kind != action_kind::all_reduce) continue;
      auto step = step_of(checked, op);
      if (step) ++sums[{op.stage, *step}];
      if (!step) found.push_back(to_string(op) + " is of no optimizer step of the plan");
    }
  bool has_sums = checked.num_replicas > 1 && checked.kind != schedule_kind::forward_only;
  for (int stage = 0; stage < checked.num_stages; ++stage)
    for (int step = 0; step < checked.flush_every; ++step) {
      auto name = to_string(action{stage, action_kind::all_reduce, step});
      auto count = sums[{stage, step}];
      if (has_sums && count == 0) found.push_back(name + " is missing");
      if (!has_sums && count > 0) found.push_back(name + " occurs in a plan without several replicas");
      if (has_sums && count > 1) found.push_back(name + " occurs several times");
    }
  for (const auto& device : checked.devices)
    if (has_sums) check_order(checked, device, sums, found);
  return found;
}

}  // namespace troupe::schedule
