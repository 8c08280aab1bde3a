#pragma once
#include <cstdint>
#include <vector>

#include "troupe/autograd/parameter.hpp"
#include "troupe/data_parallel/comm_hook.hpp"

namespace troupe {

struct bucket_limits {
  std::int64_t first_bytes =
      std::int64_t{1} << 20;  ///< limit of the first bucket; smaller, so that communication begins early
  std::int64_t bytes = std::int64_t{25} << 20;  ///< limit of the other buckets
};

/// Elements [first, first + count) of a bucket, reduced by one call.
struct bucket_chunk {
  std::int64_t first = 0, count = 0;
};

/// The parameters of one bucket and its layout.
struct planned_bucket {
  std::vector<int> parameters;       ///< indices into the argument of plan_buckets, in the bucket's order
  std::vector<bucket_part> parts;    ///< one for each of `parameters`
  std::vector<bucket_chunk> chunks;  ///< cover all elements, in order; several if a parameter is large
  std::int64_t num_elements = 0;
};

/// Assigns gradients to buckets as in PyTorch's DDP (Li et al. 2020, "PyTorch Distributed", section 3.2.3):
/// parameters are taken in reverse order, since the backward pass produces the last ones first, and a bucket
/// is closed by the parameter that reaches the limit. A bucket beyond its limit is split into chunks; if its
/// gradients are produced by blocks of rows (gradient_rows.hpp), chunks end at block boundaries, so that a
/// chunk waits for no later block. Small models get smaller buckets (an eighth of all gradients, at least the
/// first bucket's limit), since communication after the last gradient cannot be overlapped. A pure function:
/// members with the same model get the same buckets.
std::vector<planned_bucket> plan_buckets(const std::vector<named_parameter>& parameters,
                                         const bucket_limits& limits);

}  // namespace troupe
