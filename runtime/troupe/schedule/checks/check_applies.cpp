#include "troupe/schedule/checks/plan_checks.hpp"

#include <map>
#include <utility>

namespace troupe::schedule {
namespace {

using findings = std::vector<std::string>;

action apply_of(int stage, int step) { return {stage, action_kind::apply, step}; }

std::string name_of(int step) { return "optimizer step " + std::to_string(step); }

/// Follows one device through its list.
class version_walk {
 public:
  /// `graph`: that of the plan, which outlives this.
  version_walk(const plan& checked, const stage_graph& graph, int device)
      : checked_(checked), device_(device), graph_(graph) {}

  findings found() {
    for (const auto& op : checked_.devices[static_cast<std::size_t>(device_)]) visit(op);
    return std::move(found_);
  }

 private:
  void visit(const action& op) {
    auto& applied = applied_[op.stage];
    if (op.kind == action_kind::apply) return visit_apply(op, applied);
    // It averages the weights that the last A made.
    if (op.kind == action_kind::all_reduce && averages_) return;
    if (applied >= checked_.flush_every) {
      say(op, "after", apply_of(op.stage, checked_.flush_every - 1),
          "the optimizer's step is the last that a stage does");
      return;
    }
    if (is_of_microbatch(op) && op.microbatch >= 0 && op.microbatch < checked_.num_microbatches)
      visit_microbatch(op, op.microbatch / checked_.microbatches_per_step(), applied);
  }

  void visit_apply(const action& op, int& applied) {
    bool is_known = op.microbatch >= 0 && op.microbatch < checked_.flush_every;
    if (checked_.flush_every == 1) {
      applied = 1;
      if (!is_known)
        found_.push_back(to_string(op) + " has a number. Write " + to_string(apply_of(op.stage, 0)));
      return;
    }
    if (!is_known)
      found_.push_back(to_string(op) + " is of no optimizer step: the plan has " +
                       std::to_string(checked_.flush_every));
    else if (op.microbatch > applied)
      say(op, "before", apply_of(op.stage, applied), "a stage's optimizer steps come in order");
    if (is_known && op.microbatch >= applied) applied = op.microbatch + 1;
  }

  /// `applied`: how many As of the stage came before.
  void visit_microbatch(const action& op, int step, int applied) {
    using enum action_kind;
    if (step < applied)
      say(op, "after", apply_of(op.stage, applied - 1),
          "it belongs to " + name_of(step) + ", whose weights are overwritten there");
    else if (op.kind == forward && applied + 1 < step)
      say(op, "before", apply_of(op.stage, step - 2), name_of(step) + " uses the weights made there");
    else if (op.kind == forward && applied < step && is_loss(op.stage))
      say(op, "before", apply_of(op.stage, step - 1),
          "the loss of " + name_of(step) + " is scaled as the step before leaves it");
    else if ((op.kind == backward || op.kind == weight_gradient) && applied < step)
      say(op, "before", apply_of(op.stage, step - 1),
          "its gradient belongs to " + name_of(step) + " and would be added to those of the one before");
  }

  bool is_loss(int stage) const {
    return stage >= 0 && stage < checked_.num_stages && graph_.computes_loss(stage);
  }

  void say(const action& op, const char* order, const action& apply, const std::string& why) {
    found_.push_back("device " + std::to_string(device_) + " does " + to_string(op) + " " + order + " " +
                     to_string(apply) + ", but " + why);
  }

  const plan& checked_;
  bool averages_ = averages_weights(checked_);
  int device_;
  const stage_graph& graph_;
  std::map<int, int> applied_;  // [stage] how many As are done
  findings found_;
};

}  // namespace

findings check_applies(const plan& checked) {
  findings found;
  std::map<std::pair<int, int>, int> seen;  // [stage, step]
  stage_graph graph(checked.num_stages, checked.edges);
  for (int device = 0; device < checked.num_devices(); ++device) {
    for (auto& each : version_walk(checked, graph, device).found()) found.push_back(std::move(each));
    for (const auto& op : checked.devices[static_cast<std::size_t>(device)])
      if (op.kind == action_kind::apply) ++seen[{op.stage, checked.flush_every == 1 ? 0 : op.microbatch}];
  }
  bool is_training = checked.kind != schedule_kind::forward_only;
  for (int stage = 0; stage < checked.num_stages; ++stage)
    for (int step = 0; step < checked.flush_every; ++step) {
      auto apply = apply_of(stage, step);
      auto count = seen[{stage, step}];
      if (!is_training && count > 0) found.push_back(to_string(apply) + " occurs in a plan of forwards only");
      if (is_training && count == 0) found.push_back(to_string(apply) + " is missing");
      if (count > 1) found.push_back(to_string(apply) + " occurs " + std::to_string(count) + " times");
    }
  return found;
}

}  // namespace troupe::schedule
