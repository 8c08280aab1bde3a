#pragma once
#include "troupe/nn/synced_batch_norm.hpp"

namespace troupe::nn::detail {

/// While it lives, modules that run on this thread share what they share over replicas (SyncBatchNorm) with
/// those of `num_replicas` replicas, over which `sum` adds up. Null: the replicas do not run this together.
class replica_scope {
 public:
  replica_scope(int num_replicas, sum_over_members sum);
  replica_scope(const replica_scope&) = delete;
  replica_scope& operator=(const replica_scope&) = delete;
  ~replica_scope();

 private:
  friend void add_up_over_replicas(tensor& values);

  int num_replicas_;
  sum_over_members sum_;
  const replica_scope* outer_;
};

/// Replaces f32 elements by their sums over the replicas of this thread's scope; leaves them as they are
/// where there is one replica, or no scope. Throws what `sum` does, and std::logic_error if that is null.
void add_up_over_replicas(tensor& values);

}  // namespace troupe::nn::detail
