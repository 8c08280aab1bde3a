#include "troupe/collective/group/process_table.hpp"

#include <algorithm>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/job_error/job_errors.hpp"

namespace troupe::collective {
namespace {

/// Fences that are remembered; groups seldom outlive the next one.
constexpr std::size_t max_fences = 256;

}  // namespace

void process_table::on_view(std::uint64_t generation, const std::vector<std::uint32_t>& incarnations) {
  {
    std::lock_guard lock(mutex_);
    generation_ = std::max(generation_, generation);
    for (std::size_t rank = 0; rank < entries_.size(); ++rank)
      entries_[rank].incarnation = incarnations.at(rank);
  }
  changed_.notify_all();
}

void process_table::on_fence(std::uint64_t generation, const std::vector<lost_process>& lost,
                             const std::string& cause) {
  groups_end why{.generation = generation, .cause = cause};
  {
    std::lock_guard lock(mutex_);
    generation_ = std::max(generation_, generation);
    forget_suspicions();
    for (const auto& each : lost) {
      auto& entry = entries_.at(static_cast<std::size_t>(each.rank));
      if (entry.incarnation) entry.first_possible = *entry.incarnation + 1;
      entry.loss = each.cause;
      why.lost.push_back(each.rank);
    }
    fences_.emplace(generation, why);
    if (fences_.size() > max_fences) fences_.erase(fences_.begin());
  }
  changed_.notify_all();
  notify(why);
}

void process_table::suspect(world_rank rank, std::uint32_t incarnation) {
  std::lock_guard lock(mutex_);
  auto& suspected = entries_.at(static_cast<std::size_t>(rank));
  if (suspected.first_possible > incarnation) return;
  suspected.first_possible = incarnation + 1;
  suspected.is_suspected = true;
  suspected.loss = "a group lost it";
}

void process_table::clear_suspicions() {
  {
    std::lock_guard lock(mutex_);
    forget_suspicions();
  }
  changed_.notify_all();
}

void process_table::forget_suspicions() {
  for (auto& each : entries_)
    if (std::exchange(each.is_suspected, false) && each.incarnation) each.first_possible = *each.incarnation;
}

void process_table::on_end(const std::string& cause, int stop_signal) {
  {
    std::lock_guard lock(mutex_);
    if (!ended_) {
      ended_ = cause;
      stop_signal_ = stop_signal;
    }
  }
  changed_.notify_all();
  notify({.is_job_end = true, .cause = cause});
}

void process_table::set_listener(listener next) {
  std::lock_guard lock(notifying_);
  listener_ = std::move(next);
}

void process_table::notify(const groups_end& why) {
  std::lock_guard lock(notifying_);
  if (listener_) listener_(why);
}

std::uint64_t process_table::generation() const {
  std::lock_guard lock(mutex_);
  return generation_;
}

void process_table::wait_for_end_of(std::uint64_t generation, std::chrono::milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&] { return ended_ || generation_ > generation; });
  throw_if_ended();
}

std::optional<groups_end> process_table::end_of(std::uint64_t generation) const {
  std::lock_guard lock(mutex_);
  if (generation_ <= generation) return {};
  auto fence = fences_.upper_bound(generation);
  if (fence != fences_.end()) return fence->second;
  return groups_end{.generation = generation_,
                    .cause = "generation " + std::to_string(generation_) + " has begun"};
}

std::optional<std::vector<std::uint32_t>> process_table::wait_for(std::span<const world_rank> ranks,
                                                                  std::chrono::milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  bool all_came = changed_.wait_for(lock, timeout, [&] { return ended_ || all_alive(ranks); });
  throw_if_ended();
  if (!all_came) return {};
  std::vector<std::uint32_t> incarnations;
  for (world_rank rank : ranks)
    incarnations.push_back(*entries_.at(static_cast<std::size_t>(rank)).incarnation);
  return incarnations;
}

std::vector<world_rank> process_table::missing(std::span<const world_rank> ranks) const {
  std::lock_guard lock(mutex_);
  std::vector<world_rank> without;
  for (world_rank rank : ranks)
    if (!entries_.at(static_cast<std::size_t>(rank)).is_alive()) without.push_back(rank);
  return without;
}

std::optional<std::string> process_table::loss_of(world_rank rank, std::uint32_t incarnation) const {
  std::lock_guard lock(mutex_);
  throw_if_ended();
  const auto& asked = entries_.at(static_cast<std::size_t>(rank));
  bool replaced = asked.incarnation && *asked.incarnation > incarnation;
  if (asked.first_possible <= incarnation && !replaced) return {};
  return asked.loss;
}

bool process_table::all_alive(std::span<const world_rank> ranks) const {
  return std::ranges::all_of(
      ranks, [this](world_rank rank) { return entries_.at(static_cast<std::size_t>(rank)).is_alive(); });
}

void process_table::throw_if_ended() const {
  if (ended_ && stop_signal_) throw job_stopped(stop_signal_, *ended_);
  if (ended_) throw job_failed(*ended_);
}

}  // namespace troupe::collective
