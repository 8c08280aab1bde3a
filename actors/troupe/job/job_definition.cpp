#include "troupe/job/job_definition.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe::actors::job {

void job_definition::place(plan made, int world_size, const std::vector<layout::replica_content>& of_stage,
                           bool is_sharded) {
  training = std::move(made);
  placed = mesh::place_cells(training, places.places, memory_limit_bytes);
  if (is_sharded) {
    std::vector<int> stages(static_cast<std::size_t>(training.num_stages));
    std::iota(stages.begin(), stages.end(), 0);
    placed = placed.with_shards(stages);
  }
  bool has_equal = training.mesh.num_replicas > 1 && !of_stage.empty();
  parts = has_equal ? parts_of(placed, of_stage) : parts_of(placed, layout::replica_content::own);
  home = spread(placed, mesh::view_of_world(world_size));
}

const layout::job_part& job_definition::part_of(const layout::cell& wanted) const {
  auto id = placed.part_of(wanted);
  auto found = std::ranges::find(parts, id, &layout::job_part::id);
  if (found == parts.end())
    throw_invalid("job_definition::part_of", "one of the job's " + std::to_string(parts.size()) + " cells",
                  to_string(wanted));
  return *found;
}

bool job_definition::shares_metrics() const {
  return !parts.empty() && parts.back().content == layout::replica_content::equal;
}

}  // namespace troupe::actors::job
