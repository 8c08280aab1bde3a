#pragma once
#include <memory>
#include <vector>

#include "troupe/parallel/comm_hook.hpp"

namespace troupe {

/// All-reduces a bucket as it is, for the steps in which a hook does not compress yet.
std::unique_ptr<bucket_reduction> reduce_densely(gradient_bucket& bucket, communicator& group);

/// Sums f32 tensors of one shape, one for each virtual replica of this member, in the fixed tree; the sum
/// lies in the first one.
void sum_in_tree(const std::vector<tensor>& of_replicas);

/// Throws std::invalid_argument unless the bucket lies in CPU memory.
void require_on_cpu(const gradient_bucket& bucket, const char* where);

}  // namespace troupe
