#include <map>
#include <optional>

#include "troupe/schedule/checks/plan_checks.hpp"

namespace troupe::schedule {
namespace {

using findings = std::vector<std::string>;

/// What a stage holds of its parameters, as a walk through its device's list sees it.
struct stage_storage {
  std::optional<action> last;         ///< U or S
  std::optional<action> unread = {};  ///< the last U, if nothing has read the parameters since
  bool is_whole() const { return last && last->kind == action_kind::unshard; }
};

void check_alternation(const action& op, const stage_storage& before, findings& found) {
  bool is_unshard = op.kind == action_kind::unshard;
  if (is_unshard && before.is_whole())
    found.push_back(to_string(op) + " comes after " + to_string(*before.last) +
                    ", but the stage has its whole parameters already");
  if (!is_unshard && !before.is_whole())
    found.push_back(to_string(op) + " comes without a U before it, but the stage has only its shard");
  if (before.last && before.last->axis != op.axis)
    found.push_back(to_string(op) + " comes after " + to_string(*before.last) +
                    ", but a stage's parameters are sharded along one axis");
  if (op.microbatch != 0) found.push_back(to_string(op) + " has a number. U and S have none");
}

}  // namespace

findings check_storage(const plan& checked) {
  findings found;
  std::map<int, action> first;  // [stage] U or S
  for (const auto& device : checked.devices)
    for (const auto& op : device)
      if (is_of_storage(op.kind)) first.try_emplace(op.stage, op);
  for (const auto& [stage, op] : first) {
    if (checked.flush_every > 1)
      found.push_back(to_string(op) +
                      " occurs in a plan with several optimizer steps, of which a stage keeps " +
                      "two versions of its whole weights");
    if (averages_weights(checked))
      found.push_back(to_string(op) +
                      " occurs in a plan whose replicas average their weights, which each of them has whole");
  }
  for (const auto& device : checked.devices) {
    std::map<int, stage_storage> storage;
    for (const auto& op : device) {
      auto& of_stage = storage[op.stage];
      if (is_of_storage(op.kind)) {
        check_alternation(op, of_stage, found);
        of_stage.last = op;
        if (op.kind == action_kind::unshard) of_stage.unread = op;
        continue;
      }
      if (reads_parameters(op.kind)) of_stage.unread.reset();
      if (reads_parameters(op.kind) && first.contains(op.stage) && !of_stage.is_whole()) {
        found.push_back(to_string(op) + " comes " +
                        (of_stage.last ? "after " + to_string(*of_stage.last) : "before any U of its stage") +
                        ", but reads the whole parameters");
      }
    }
    for (const auto& [stage, of_stage] : storage)
      if (of_stage.unread)
        found.push_back(to_string(*of_stage.unread) + " gathers parameters that nothing reads after it");
  }
  return found;
}

}  // namespace troupe::schedule
