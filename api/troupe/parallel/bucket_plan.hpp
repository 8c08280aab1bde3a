#pragma once
#include <cstdint>
#include <vector>

#include "troupe/autograd/parameter.hpp"
#include "troupe/parallel/comm_hook.hpp"

namespace troupe {

struct bucket_limits {
  std::int64_t first_bytes = std::int64_t{1} << 20;  ///< of the first bucket: communication begins early
  std::int64_t bytes = std::int64_t{25} << 20;       ///< of the others, at most
};

/// Elements [first, first + count) of a bucket, which one call reduces.
struct bucket_piece {
  std::int64_t first = 0, count = 0;
};

/// One bucket: the parameters in it, and the elements that it takes.
struct planned_bucket {
  std::vector<int> parameters;       ///< indices into what was planned
  std::vector<bucket_part> parts;    ///< the same ones
  std::vector<bucket_piece> pieces;  ///< all elements, in order; more than one where a parameter is large
  std::int64_t num_elements = 0;
};

/// Which gradients travel together: parameters in reverse order, since backward passes bring the last ones
/// first; a bucket is closed by the parameter with which it reaches its limit. Where that takes it beyond, it
/// is cut into pieces: where gradients come by rows (gradient_rows.hpp), between those that come together, so
/// that none waits for others. Small models have smaller buckets, an eighth of all gradients but no less than
/// the first one's limit: what is on its way after the last gradient is hard to hide. A pure function, so
/// members with the same model have the same buckets (Li et al. 2020, "PyTorch Distributed", section 3.2.3).
std::vector<planned_bucket> plan_buckets(const std::vector<named_parameter>& parameters,
                                         const bucket_limits& limits);

}  // namespace troupe
