#include "troupe/data_parallel/comm_hook.hpp"

#include "troupe/gradients/replica_sum.hpp"

namespace troupe {

work all_reduce_leaves(const gradient_bucket& bucket, communicator& group) {
  return gradients::all_reduce_replicas(bucket.leaves, bucket.sum, *bucket.replicas, group);
}

}  // namespace troupe
