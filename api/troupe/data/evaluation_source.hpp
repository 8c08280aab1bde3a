#pragma once
#include "troupe/data/dataset.hpp"
#include "troupe/program/batch_source.hpp"

namespace troupe {

/// What of a data set a source reads.
enum class evaluation_part : std::uint8_t { samples_and_labels, samples };

/// Every sample exactly once, in order; the last batch may be smaller than the others.
///
/// Nothing is padded and nothing dropped. Instead the number of microbatches is the largest divisor of the
/// number of samples that is not above the one asked for, and every batch a multiple of it, so that every
/// batch, the last one too, cuts into equal microbatches. 10,000 samples, batch 250, 8 microbatches: 40
/// batches of 248 and one of 80. With a prime number of samples there is one microbatch per batch: slower,
/// never wrong.
class evaluation_source : public batch_source {
 public:
  /// `batch` is the most samples per step. Throws bad_input unless batch >= microbatches >= 1, and
  /// for no samples.
  evaluation_source(dataset_ptr samples, std::int64_t batch, int microbatches,
                    evaluation_part part = evaluation_part::samples_and_labels);

  /// How many microbatches every batch is to be cut into.
  int num_microbatches() const { return num_microbatches_; }
  std::uint64_t num_steps_per_epoch() const override;
  /// Step num_steps_per_epoch() begins anew.
  batch at(std::uint64_t step) override;

 private:
  dataset_ptr samples_;
  evaluation_part part_;
  int num_microbatches_;
  std::int64_t batch_;
};

}  // namespace troupe
