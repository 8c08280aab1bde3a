#include "troupe/execution/replicas/replica_groups.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace troupe::execution {
namespace {

std::vector<world_rank> distinct(std::vector<world_rank> ranks) {
  std::ranges::sort(ranks, {}, &world_rank::value);
  auto again = std::ranges::unique(ranks, {}, &world_rank::value);
  ranks.erase(again.begin(), again.end());
  return ranks;
}

}  // namespace

replica_groups::replica_groups(std::uint64_t generation, std::uint32_t job, replica_ranks ranks,
                               group_maker make, failure_callback on_failure)
    : generation_(generation),
      job_(job),
      ranks_(std::move(ranks)),
      make_(std::move(make)),
      on_failure_(std::move(on_failure)),
      thread_([this] { make_all(); }) {}

/// A communicator that is idle ends in peace: others may have ended theirs already.
replica_groups::~replica_groups() {
  *has_ended_ = true;
  thread_.join();
}

void replica_groups::make_all() {
  try {
    for (const auto& [wanted, of_replicas] : ranks_)
      if (!*has_ended_) make_group(wanted, of_replicas);
  } catch (const std::exception& problem) {
    report(problem);
  }
}

void replica_groups::make_group(const key& wanted, const std::vector<world_rank>& of_replicas) {
  replica_group group;
  auto members = distinct(of_replicas);
  for (auto rank : of_replicas) {
    auto found = std::ranges::find(members, rank.value(), &world_rank::value);
    group.member_of_replica.emplace_back(static_cast<int>(found - members.begin()));
  }
  auto name = "gradients of stage " + std::to_string(wanted.stage) +
              (wanted.slice == 0 ? "" : " slice " + std::to_string(wanted.slice)) + " of job " +
              std::to_string(job_);
  auto check = [ended = has_ended_, name] {
    if (*ended)
      throw collective_error(collective_failure::cancelled, name, 0, {},
                             "group " + name + " ends: its job does not run any more");
  };
  group.calls = make_({generation_, name, members, [this, wanted] { tell(wanted); }, check});
  std::lock_guard lock(mutex_);
  groups_.emplace(wanted, std::move(group));
  made_.notify_all();
}

void replica_groups::report(const std::exception& cause) const {
  if (!*has_ended_) on_failure_(cause);
}

void replica_groups::listen(const key& wanted, std::function<void()> on_call_end) {
  std::lock_guard lock(telling_);
  listeners_[wanted].push_back(std::move(on_call_end));
}

void replica_groups::tell(const key& of_group) {
  std::lock_guard lock(telling_);
  for (const auto& each : listeners_[of_group]) each();
}

const replica_group* replica_groups::wait_for(const key& wanted, std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  made_.wait_for(lock, most, [&] { return groups_.contains(wanted); });
  auto found = groups_.find(wanted);
  return found == groups_.end() ? nullptr : &found->second;
}

void replica_groups::end() {
  *has_ended_ = true;
  {
    std::lock_guard lock(telling_);
    listeners_.clear();
  }
  std::vector<std::shared_ptr<communicator>> made;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [one, group] : groups_) made.push_back(group.calls);
  }
  for (const auto& each : made)
    each->abort(collective_error(collective_failure::cancelled, each->group().name, 0, {},
                                 "group " + each->group().name + " ends with its generation"));
}

}  // namespace troupe::execution
