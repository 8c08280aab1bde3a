#include "troupe/schedule/checks/plan_checks.hpp"

#include <map>
#include <optional>
#include <set>
#include <utility>

namespace troupe::schedule {
namespace {

using findings = std::vector<std::string>;
using layout::mesh_axis;

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

bool is_sum_along(mesh_axis axis, const action& op) {
  return op.kind == action_kind::all_reduce && op.axis == axis;
}

/// The Gs along one axis.
class sums_along {
 public:
  sums_along(const plan& checked, mesh_axis axis) : checked_(checked), axis_(axis) {
    for (const auto& device : checked.devices)
      for (const auto& op : device)
        if (auto step = step_of(checked, op); is_sum_along(axis, op) && step) {
          ++count_[{op.stage, *step}];
          stages_.insert(op.stage);
        }
  }

  void check(findings& found) const {
    for (int stage = 0; stage < checked_.num_stages; ++stage)
      for (int step = 0; step < checked_.flush_every; ++step) {
        auto count = count_of(stage, step);
        auto name = name_of(stage, step);
        if (must_have(stage) && count == 0) found.push_back(name + " is missing");
        if (!may_have() && count > 0)
          found.push_back(name + " occurs in a plan without several " +
                          (axis_ == mesh_axis::dp ? "replicas" : "slices"));
        if (may_have() && count > 1) found.push_back(name + " occurs several times");
      }
    if (!may_have()) return;
    if (axis_ == mesh_axis::dp && averages_weights(checked_)) return check_averages(found);
    for (const auto& device : checked_.devices) check_order(device, found);
  }

 private:
  bool may_have() const {
    return checked_.mesh.size_of(axis_) > 1 && checked_.kind != schedule_kind::forward_only;
  }
  /// Slices have common parameters in some stages, replicas in all.
  bool must_have(int stage) const {
    return may_have() && (axis_ == mesh_axis::dp || stages_.contains(stage));
  }
  int count_of(int stage, int step) const {
    auto found = count_.find({stage, step});
    return found == count_.end() ? 0 : found->second;
  }
  std::string name_of(int stage, int step) const {
    return to_string(action{stage, action_kind::all_reduce, step, axis_});
  }

  /// All stages average weights, or all sum gradients.
  void check_averages(findings& found) const {
    std::optional<action> sum, average;
    for (const auto& device : checked_.devices) {
      std::set<std::pair<int, int>> applied;  // [stage, step]
      for (const auto& op : device) {
        if (op.kind == action_kind::apply) applied.insert({op.stage, op.microbatch});
        if (!is_sum_along(axis_, op)) continue;
        auto& first = applied.contains({op.stage, op.microbatch}) ? average : sum;
        if (!first) first = op;
      }
    }
    if (sum)
      found.push_back(to_string(*sum) + " sums gradients before the optimizer's step, but " +
                      to_string(*average) +
                      " averages weights after it: in all stages it is the one or the other");
  }

  void check_order(const std::vector<action>& device, findings& found) const {
    std::set<std::pair<int, int>> done;  // [stage, step]
    for (const auto& op : device) {
      auto step = step_of(checked_, op);
      if (!step || count_of(op.stage, *step) == 0) continue;
      std::pair which(op.stage, *step);
      if (is_sum_along(axis_, op)) {
        done.insert(which);
        continue;
      }
      bool is_after = done.contains(which);
      auto why = is_after ? objection_after(op) : objection_before(op);
      if (!why.empty())
        found.push_back(to_string(op) + " comes " + (is_after ? "after " : "before ") +
                        name_of(op.stage, *step) + ", but " + why);
    }
  }

  /// Why an action may not come after the G of its step; empty: it may.
  std::string objection_after(const action& op) const {
    if (completes_gradient(op)) return "adds to the gradients that it sums";
    return axis_ == mesh_axis::dp && is_before_sums(op) ? "each replica adds up tied weights before" : "";
  }

  /// Why an action may not come before the G of its step; empty: it may.
  std::string objection_before(const action& op) const {
    if (op.kind == action_kind::apply)
      return axis_ == mesh_axis::dp ? "uses the gradients of all replicas"
                                    : "uses the gradients of all slices";
    bool is_reduction = op.kind == action_kind::reduce_gradient;
    if (axis_ == mesh_axis::tp && (is_reduction || op.kind == action_kind::all_reduce))
      return "combines what it sums";
    return is_reduction && !is_before_sums(op) ? "reduces what it sums" : "";
  }

  bool is_before_sums(const action& op) const {
    return op.kind == action_kind::reduce_gradient &&
           checked_.reductions[static_cast<std::size_t>(op.microbatch)].before_sums;
  }

  const plan& checked_;
  mesh_axis axis_;
  std::map<std::pair<int, int>, int> count_;  // [stage, step]
  std::set<int> stages_;                      // that have any
};

}  // namespace

findings check_all_reduces(const plan& checked) {
  findings found;
  for (const auto& device : checked.devices)
    for (const auto& op : device)
      if (op.kind == action_kind::all_reduce && !step_of(checked, op))
        found.push_back(to_string(op) + " is of no optimizer step of the plan");
  for (auto axis : layout::mesh_axes) sums_along(checked, axis).check(found);
  return found;
}

}  // namespace troupe::schedule
