#include "troupe/job/job_definition.hpp"

namespace troupe {

void job_definition::place(plan made, int world_size) {
  training = std::move(made);
  placed = place_cells(training);
  parts = parts_of(placed, replica_content::own);
  home = spread(placed, view_of_world(world_size));
}

}  // namespace troupe
