#pragma once
#include <cstddef>
#include <vector>

#include "troupe/fsdp/fully_sharded_data_parallel.hpp"

namespace troupe {

/// Bytes that a member of a FullyShardedDataParallel will hold, but for activations and buffers.
struct sharding_estimate {
  std::size_t parameters = 0;  ///< its part; with `grad` and `optimizer` all of them
  std::size_t gradients = 0;   ///< its part of the sums; with `optimizer` whole ones beside
  std::size_t optimizer = 0;   ///< the state of its part
  std::size_t blocks = 0;      ///< for whole units of values and gradients, the most at a time
  std::size_t total() const { return parameters + gradients + optimizer + blocks; }
};

/// What the members of a group would hold of a model, by member, before anything is allocated: the model need
/// only be described. Parameters, sums and the optimizer's state are exact; blocks are the most there may be,
/// with one replica on each member and without no_sync, which adds whole gradients. An operation that reads
/// several units needs a block for each. `num_members`: of one division. Throws std::invalid_argument for
/// fewer than one, and as FullyShardedDataParallel does for options out of range.
std::vector<sharding_estimate> estimate_sharding(nn::Module& model, const optim::Optimizer& optimizer,
                                                 int num_members, const fully_sharded_options& options = {});

}  // namespace troupe
