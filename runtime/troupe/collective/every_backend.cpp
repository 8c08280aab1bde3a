#include "troupe/collective/every_backend.hpp"

#include "troupe/collective/libraries/gloo/gloo_group.hpp"
#include "troupe/collective/libraries/mpi/mpi_group.hpp"
#include "troupe/collective/libraries/nccl/nccl_group.hpp"

namespace troupe {

std::vector<group_backend> every_backend() { return {gloo_groups(), mpi_groups(), nccl_groups()}; }

}  // namespace troupe
