#pragma once
#include "troupe/collective/nccl/nccl_connection.hpp"
#include "troupe/collective/operation.hpp"

namespace troupe::nccl_calls {

/// Issues the call on the connection; it goes on by itself. Throws nccl_error.
void issue(const nccl_connection& on, const collective_operation& what);

}  // namespace troupe::nccl_calls
