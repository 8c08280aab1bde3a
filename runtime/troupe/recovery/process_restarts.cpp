#include "troupe/recovery/process_restarts.hpp"

namespace troupe::recovery {
namespace {

/// Whether they are the same but for a text that one of them did not manage to tell: "exit code 1" and "exit
/// code 1: no such file".
bool is_same_cause(const std::string& a, const std::string& b) {
  const auto &shorter = a.size() < b.size() ? a : b, &longer = a.size() < b.size() ? b : a;
  return longer == shorter || longer.starts_with(shorter + ": ");
}

}  // namespace

std::optional<std::string> process_restarts::refusal(const process_failure& lost, time_point now) {
  if (restarts_.num_recent(now) >= options_.max_restarts)
    return "no restarts are left (--max-restarts " + std::to_string(options_.max_restarts) + ")";
  if (!lost.was_wanted && times_the_same(lost, now) > options_.max_same_failure)
    return "it failed in the same way " + std::to_string(options_.max_same_failure + 1) +
           " times without a step done in between, so starting it again would not cure it";
  restarts_.restart(now);
  return {};
}

int process_restarts::times_the_same(const process_failure& lost, time_point now) {
  auto& before = failures_[lost.rank];
  auto progress = lost.was_killed_by_others ? lost.num_advances : lost.newest_step;
  bool same = before.times > 0 && is_same_cause(before.cause, lost.cause) && before.progress == progress &&
              now - before.last < options_.window;
  before = {lost.cause, progress, same ? before.times + 1 : 1, now};
  return before.times;
}

}  // namespace troupe::recovery
