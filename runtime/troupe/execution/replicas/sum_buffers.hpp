#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "troupe/program/stage_parameters.hpp"

namespace troupe::execution {

/// The memory of a device's sums over replicas (replica_exchange::sum_memory), bucket by bucket, G after G
/// the same, in blocks of several buckets. Not thread-safe.
class sum_buffers {
 public:
  explicit sum_buffers(program::stage_parameters::memory_source source) : source_(std::move(source)) {}

  /// The memory of this bucket; another one than before if it needs more.
  tensor of(int stage, int bucket, std::int64_t num_elements, dtype type);
  /// Returns all memory. No process may read sums in it any more.
  void clear();

 private:
  tensor take(std::int64_t num_bytes);

  program::stage_parameters::memory_source source_;
  tensor block_;  ///< the newest block, from which buckets are cut
  std::int64_t num_used_ = 0;
  std::map<std::pair<int, int>, tensor> buckets_;  ///< u8
};

}  // namespace troupe::execution
