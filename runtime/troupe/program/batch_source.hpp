#pragma once
#include <cstdint>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// The samples of one global batch.
struct batch {
  tensor inputs;   ///< [batch, ...]
  tensor targets;  ///< [batch]
};

/// Where batches come from: a pure function of the step. Called from a loader's thread, one call at a time.
class batch_source {
 public:
  virtual ~batch_source() = default;
  virtual std::uint64_t num_steps_per_epoch() const = 0;
  /// Batch of global step `step` (training: step / num_steps_per_epoch() is the epoch; evaluation: its
  /// number).
  virtual batch at(std::uint64_t step) = 0;
};

}  // namespace troupe
