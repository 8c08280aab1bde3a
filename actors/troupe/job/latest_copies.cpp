#include "troupe/job/latest_copies.hpp"

#include <algorithm>
#include <utility>

#include "troupe/job/job_definition.hpp"
#include "troupe/recovery/replica.hpp"

namespace troupe::actors::job {
namespace {

std::vector<layout::job_part> of_first_replica(const std::vector<layout::job_part>& parts) {
  std::vector<layout::job_part> found;
  for (const auto& part : parts)
    if (part.id.cell.replica == 0) found.push_back(part);
  return found;
}

}  // namespace

latest_copies::latest_copies(const std::vector<layout::job_part>& parts) : wanted_(of_first_replica(parts)) {}

const layout::job_part* latest_copies::wanted_for(const layout::part_id& held) const {
  auto found =
      std::ranges::find_if(wanted_, [&](const layout::job_part& wanted) { return stands_for(held, wanted); });
  return found == wanted_.end() ? nullptr : &*found;
}

/// Steps that are older than the complete one are dropped; at most those stay that are not committed yet.
void latest_copies::put(std::uint64_t step, const layout::part_id& part, const tensor& packed) {
  const auto* wanted = wanted_for(part);
  if (!wanted) return;
  std::lock_guard lock(mutex_);
  if (complete_ && step <= complete_->step) return;
  auto& parts = incomplete_[step];
  parts.insert_or_assign(wanted->id, packed);
  if (parts.size() < wanted_.size()) return;
  complete_copy made{step, {}};
  for (const auto& each : wanted_) made.packed.push_back(parts.at(each.id));
  complete_ = std::move(made);
  incomplete_.erase(incomplete_.begin(), incomplete_.upper_bound(step));
}

std::optional<latest_copies::complete_copy> latest_copies::get() const {
  std::lock_guard lock(mutex_);
  return complete_;
}

bool gets_complete_copies(const job_definition& job, int rank, int world_size) {
  auto world = mesh::view_of_world(world_size);
  world_rank self{rank};
  auto comes_here = [&](const layout::job_part& part) {
    return host_of(job.placed, job.home, part.id) == self ||
           recovery::copy_keeper(part, job.parts, job.placed, job.home, world) == self;
  };
  return std::ranges::all_of(of_first_replica(job.parts), [&](const layout::job_part& wanted) {
    return std::ranges::any_of(job.parts, [&](const layout::job_part& held) {
      return stands_for(held.id, wanted) && comes_here(held);
    });
  });
}

}  // namespace troupe::actors::job
