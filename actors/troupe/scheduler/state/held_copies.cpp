#include "troupe/scheduler/state/held_copies.hpp"

#include <algorithm>

#include "troupe/recovery/retention.hpp"

namespace troupe::actors::scheduler {

void held_copies::set(const recovery::process_inventory& inventory) {
  processes_[inventory.rank] = inventory;
  count_anew();
}

void held_copies::add(int rank, const recovery::held_part& part, const std::vector<layout::job_part>& parts) {
  bool is_new = !processes_.contains(rank);
  auto& process = processes_[rank];
  process.rank = rank;
  process.parts.push_back(part);
  auto& holders = steps_[part.step];
  holders.add(rank, part);
  auto before = committed_step(parts);
  if (is_new) committed_.reset();  // with more processes a single holder no longer commits a step
  if (part.step > before && holders.outlives_one_loss(processes_.size(), parts)) committed_ = part.step;
  auto committed = committed_step(parts);
  if (committed > before || part.step < committed) forget_older(committed);
}

void held_copies::forget_older(std::uint64_t committed) {
  for (auto& [rank, process] : processes_)
    std::erase_if(process.parts, [&](const recovery::held_part& old) { return old.step < committed; });
  steps_.erase(steps_.begin(), steps_.lower_bound(committed));
}

void held_copies::lose_replicas(int rank, const std::vector<layout::job_part>& parts) {
  committed_before_loss_ = held_by_owners(parts);
  auto found = processes_.find(rank);
  if (found == processes_.end()) return;
  std::erase_if(found->second.parts, [](const recovery::held_part& part) {
    return part.location == recovery::part_location::peer_memory;
  });
  count_anew();
}

std::uint64_t held_copies::held_by_owners(const std::vector<layout::job_part>& parts) const {
  return std::max(committed_before_loss_, committed_step(parts));
}

void held_copies::roll_back(const recovery::restore_plan& plan) {
  committed_before_loss_ = 0;
  for (auto& [rank, process] : processes_)
    std::erase_if(process.parts, [&](const recovery::held_part& part) {
      return plan.from_scratch || part.step > plan.step;
    });
  count_anew();
}

void held_copies::count_anew() {
  steps_.clear();
  committed_.reset();
  for (const auto& [rank, process] : processes_)
    for (const auto& part : process.parts) steps_[part.step].add(rank, part);
}

std::vector<recovery::process_inventory> held_copies::inventories() const {
  std::vector<recovery::process_inventory> all;
  for (const auto& [rank, process] : processes_) all.push_back(process);
  return all;
}

std::uint64_t held_copies::committed_step(const std::vector<layout::job_part>& parts) const {
  if (!committed_) committed_ = newest_committed_step(inventories(), parts);
  return *committed_;
}

bool held_copies::is_uncommitted(std::uint64_t step, const std::vector<layout::job_part>& parts) const {
  auto next = requested_.upper_bound(held_by_owners(parts));
  return next != requested_.end() && *next <= step;
}

std::size_t held_copies::num_uncommitted(const std::vector<layout::job_part>& parts) {
  requested_.erase(requested_.begin(), requested_.upper_bound(committed_step(parts)));
  return requested_.size();
}

}  // namespace troupe::actors::scheduler
