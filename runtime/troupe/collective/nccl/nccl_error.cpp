#include "troupe/collective/nccl/nccl_functions.hpp"

namespace troupe {

void check(ncclResult_t status, const std::source_location& where) {
  if (status == ncclSuccess || status == ncclInProgress) return;
  throw nccl_error(
      std::string("NCCL: ") + nccl().get_error_string(status) + " (in " + where.function_name() + ')',
      status);
}

}  // namespace troupe
