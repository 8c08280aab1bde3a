#pragma once
#include <memory>

#include "troupe/data_parallel/comm_hook.hpp"

namespace troupe::detail {

/// All-reduces a bucket without compression, for a hook's first steps (dense_steps).
std::unique_ptr<bucket_reduction> all_reduce_dense(gradient_bucket& bucket, communicator& group);

/// Throws std::invalid_argument unless the bucket is in CPU memory.
void require_on_cpu(const gradient_bucket& bucket, const char* function);

}  // namespace troupe::detail
