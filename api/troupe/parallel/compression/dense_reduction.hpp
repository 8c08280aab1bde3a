#pragma once
#include <memory>
#include <vector>

#include "troupe/parallel/comm_hook.hpp"

namespace troupe {

/// All-reduces a bucket without compression, for a hook's first steps (dense_steps).
std::unique_ptr<bucket_reduction> all_reduce_dense(gradient_bucket& bucket, communicator& group);

/// Sums f32 tensors of one shape, one per virtual replica of this member, in the fixed tree order, into the
/// first tensor.
void sum_in_tree(const std::vector<tensor>& of_replicas);

/// Throws std::invalid_argument unless the bucket is in CPU memory.
void require_on_cpu(const gradient_bucket& bucket, const char* function);

}  // namespace troupe
