#include "troupe/job/job_definition.hpp"

namespace troupe {

std::vector<int> job_definition::ranks_of_stages() const {
  std::vector<int> ranks;
  for (auto device : training.device_of_stage) ranks.push_back(rank_of_device(device));
  return ranks;
}

}  // namespace troupe
