#pragma once
#include <span>
#include <vector>

namespace troupe::gradients {

/// Measured times of one gradient chunk, in seconds.
struct timed_chunk {
  double ready = 0;  ///< when its gradients are complete
  double takes = 0;  ///< how long its all_reduce occupies the link
  int needed = 0;    ///< priority: the position at which the next forward pass needs its weights
};

/// Orders the chunks for a link that carries one at a time, by list scheduling with priorities. Whenever the
/// link is free, it takes the ready chunk that is needed first (ties: in the given order), or if none is
/// ready, the one that is ready next. So chunks that the next forward pass needs early overtake chunks that
/// it needs late (Jayarajan et al. 2019, "Priority-based Parameter Propagation", section 3). Returns indices
/// into `chunks`.
std::vector<int> communication_order(std::span<const timed_chunk> chunks);

}  // namespace troupe::gradients
