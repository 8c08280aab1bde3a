#include "troupe/data_parallel/comm_hook.hpp"

#include "troupe/gradients/replica_sum.hpp"

namespace troupe {

tensor part_of(const tensor& leaf, const bucket_part& part) {
  return leaf.rows(part.first, part.extents.num_elements()).reshape(part.extents);
}

work all_reduce_leaves(const gradient_bucket& bucket, communicator& group) {
  return gradients::all_reduce_replicas(bucket.leaves, bucket.sum, *bucket.replicas, group);
}

}  // namespace troupe
