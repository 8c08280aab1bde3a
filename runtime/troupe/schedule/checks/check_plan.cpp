#include "troupe/schedule/checks/check_plan.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "troupe/schedule/action_graph.hpp"
#include "troupe/schedule/checks/plan_checks.hpp"
#include "troupe/schedule/gradient_order.hpp"

namespace troupe::schedule {
namespace {

using findings = std::vector<std::string>;

bool has_stage(const plan& checked, int stage) { return stage >= 0 && stage < checked.num_stages; }

/// Of an action of a microbatch.
bool exists(const plan& checked, const action& op) {
  return has_stage(checked, op.stage) && op.microbatch >= 0 && op.microbatch < checked.num_microbatches;
}

void check_home(const plan& checked, int device, const action& op, findings& found) {
  int home = checked.device_of_stage[static_cast<std::size_t>(op.stage)];
  if (home != device)
    found.push_back("device " + std::to_string(device) + " does " + to_string(op) + ", but stage " +
                    std::to_string(op.stage) + " is on device " + std::to_string(home));
}

void check_places(const plan& checked, findings& found) {
  for (int device = 0; device < checked.num_devices(); ++device) {
    for (const auto& op : checked.devices[static_cast<std::size_t>(device)]) {
      bool has_home = is_of_microbatch(op) ? exists(checked, op) : has_stage(checked, op.stage);
      if (!has_home) {
        found.push_back("device " + std::to_string(device) + " does " + to_string(op) +
                        ", but there are stages " + number_range(checked.num_stages) + " and microbatches " +
                        number_range(checked.num_microbatches));
        continue;
      }
      check_home(checked, device, op, found);
    }
  }
}

/// How often each kind of action occurs for one stage and microbatch.
struct occurrences {
  int stage = 0;
  int microbatch = 0;
  std::array<int, 4> of_kind = {};
  int count(action_kind kind) const { return of_kind[static_cast<std::size_t>(kind)]; }
  std::string name(action_kind kind) const { return to_string(action{stage, kind, microbatch}); }
};

void check_backward(const occurrences& seen, findings& found) {
  using enum action_kind;
  bool split = seen.count(input_gradient) > 0 || seen.count(weight_gradient) > 0;
  if (seen.count(backward) > 0 && split)
    found.push_back(seen.name(backward) + " is a whole backward, so " +
                    seen.name(seen.count(input_gradient) > 0 ? input_gradient : weight_gradient) +
                    " is done twice");
  if (seen.count(backward) > 0) return;
  if (!split) found.push_back(seen.name(backward) + " is missing");
  if (split && seen.count(input_gradient) == 0) found.push_back(seen.name(input_gradient) + " is missing");
  if (split && seen.count(weight_gradient) == 0) found.push_back(seen.name(weight_gradient) + " is missing");
}

void check_cell(schedule_kind kind, const occurrences& seen, findings& found) {
  using enum action_kind;
  for (auto each : {forward, backward, input_gradient, weight_gradient}) {
    if (seen.count(each) > 1)
      found.push_back(seen.name(each) + " occurs " + std::to_string(seen.count(each)) + " times");
    if (kind == schedule_kind::forward_only && each != forward && seen.count(each) > 0)
      found.push_back(seen.name(each) + " occurs in a plan of forwards only");
  }
  if (seen.count(forward) == 0) found.push_back(seen.name(forward) + " is missing");
  if (kind != schedule_kind::forward_only) check_backward(seen, found);
}

void check_occurrences(const plan& checked, findings& found) {
  auto columns = static_cast<std::size_t>(checked.num_microbatches);
  std::vector<occurrences> cells(static_cast<std::size_t>(checked.num_stages) * columns);
  auto cell = [&cells, columns](int stage, int microbatch) -> occurrences& {
    return cells[static_cast<std::size_t>(stage) * columns + static_cast<std::size_t>(microbatch)];
  };
  for (const auto& device : checked.devices)
    for (const auto& op : device)
      if (is_of_microbatch(op) && exists(checked, op))
        ++cell(op.stage, op.microbatch).of_kind[static_cast<std::size_t>(op.kind)];
  for (int stage = 0; stage < checked.num_stages; ++stage) {
    for (int microbatch = 0; microbatch < checked.num_microbatches; ++microbatch) {
      auto& seen = cell(stage, microbatch);
      seen.stage = stage;
      seen.microbatch = microbatch;
      check_cell(checked.kind, seen, found);
    }
  }
}

/// Actions of one stage that come in ascending order of microbatches.
struct ascending_kind {
  std::vector<action_kind> kinds;
  const char* rule;
};

void check_order(const plan& checked, const ascending_kind& ascending, findings& found) {
  for (int device = 0; device < checked.num_devices(); ++device) {
    std::vector<const action*> last(static_cast<std::size_t>(checked.num_stages), nullptr);
    for (const auto& op : checked.devices[static_cast<std::size_t>(device)]) {
      if (std::ranges::count(ascending.kinds, op.kind) == 0 || !exists(checked, op)) continue;
      auto& before = last[static_cast<std::size_t>(op.stage)];
      if (before && before->microbatch > op.microbatch)
        found.push_back("device " + std::to_string(device) + " does " + to_string(op) + " after " +
                        to_string(*before) + ", but " + ascending.rule);
      before = &op;
    }
  }
}

/// Sums of floats depend on their order, so stages add up their microbatches in one order, ascending in all
/// schedules of ours; and so does what forwards leave in their stage (running statistics).
void check_orders(const plan& checked, findings& found) {
  using enum action_kind;
  if (gradient_order_of(checked) == gradient_order::ascending)
    check_order(checked,
                {{backward, weight_gradient},
                 "a stage's weight gradients add up in ascending order of microbatches, or in all stages in "
                 "descending order"},
                found);
  check_order(checked, {{forward}, "a stage's forwards come in ascending order of microbatches"}, found);
}

/// Names the A that may be at fault, where it is not the last that the stage does.
std::string before_apply(const plan& checked, int stage, int step) {
  if (checked.flush_every == 1) return {};
  return ", but before " + to_string(action{stage, action_kind::apply, step});
}

/// F and I of a later step add nothing to the gradients; of this one, what follows them is found. What comes
/// after the last A is found by check_applies.
bool is_ignored(const plan& checked, const action& op, int applied) {
  return op.kind == action_kind::forward || op.kind == action_kind::input_gradient ||
         applied >= checked.flush_every;
}

/// `applied`: how many As of the stage come before.
bool is_in_its_step(const plan& checked, const action& reduction, int applied, findings& found) {
  int step = reduction.microbatch / checked.reductions_per_step();
  if (checked.flush_every == 1 || step == applied) return true;
  action apply{reduction.stage, action_kind::apply, step < applied ? step : applied};
  found.push_back(to_string(reduction) + " comes " + (step < applied ? "after " : "before ") +
                  to_string(apply) + ", but is a reduction of optimizer step " + std::to_string(step));
  return false;
}

/// Each stage that takes part in a reduction has one R of it, after the last weight gradient of its optimizer
/// step and before that step's A. The Rs of a step come in ascending order.
void check_reductions(const plan& checked, findings& found) {
  auto count = static_cast<int>(checked.reductions.size());
  std::map<std::pair<int, int>, int> seen;  // [reduction, stage]
  for (const auto& device : checked.devices) {
    std::map<int, action> reduced;  // [stage] its last R since an A
    std::map<int, int> applied;     // [stage] the steps up to its latest A
    for (const auto& op : device) {
      if (op.kind == action_kind::apply) {
        auto& count_applied = applied[op.stage];
        count_applied = std::max(count_applied, op.microbatch + 1);
        if (count_applied < checked.flush_every) reduced.erase(op.stage);
        continue;
      }
      if (op.kind == action_kind::all_reduce || is_of_storage(op.kind)) continue;  // see the checks of these
      bool is_reduction = op.kind == action_kind::reduce_gradient;
      if (is_reduction) ++seen[{op.microbatch, op.stage}];
      if (checked.flush_every > 1 && is_ignored(checked, op, applied[op.stage])) continue;
      auto before = reduced.find(op.stage);
      if (before != reduced.end() && (!is_reduction || op.microbatch <= before->second.microbatch))
        found.push_back(to_string(op) + " comes after " + to_string(before->second) +
                        before_apply(checked, op.stage, applied[op.stage]));
      if (!is_reduction) continue;
      auto number = static_cast<std::size_t>(op.microbatch);
      bool takes_part = op.microbatch >= 0 && op.microbatch < count &&
                        std::ranges::count(checked.reductions[number].stages, op.stage) == 1;
      if (!takes_part) found.push_back(to_string(op) + " is no reduction of the plan");
      if (!takes_part || is_in_its_step(checked, op, applied[op.stage], found)) reduced[op.stage] = op;
    }
  }
  for (int number = 0; number < count; ++number)
    for (int stage : checked.reductions[static_cast<std::size_t>(number)].stages)
      if (auto name = to_string(action{stage, action_kind::reduce_gradient, number});
          seen[{number, stage}] != 1)
        found.push_back(name + (seen[{number, stage}] == 0 ? " is missing" : " occurs several times"));
}

}  // namespace

std::vector<std::string> check_plan(const plan& checked) {
  auto found = check_form(checked);
  if (!found.empty()) return found;
  check_places(checked, found);
  check_occurrences(checked, found);
  check_orders(checked, found);
  check_reductions(checked, found);
  std::ranges::move(check_applies(checked), std::back_inserter(found));
  std::ranges::move(check_all_reduces(checked), std::back_inserter(found));
  std::ranges::move(check_storage(checked), std::back_inserter(found));
  // Where lanes wait for each other they are equally far, since their lists are one: what is sound for one
  // is for all.
  auto one_lane = checked;
  one_lane.mesh = {};
  one_lane.joint.clear();
  for (auto& cycle : find_cycles(action_graph(one_lane))) found.push_back(std::move(cycle));
  return found;
}

}  // namespace troupe::schedule
