#pragma once
#include "troupe/data/dataset.hpp"
#include "troupe/program/batch_source.hpp"

namespace troupe::detail {

/// Which tensors of a data set a source reads.
enum class evaluation_part : std::uint8_t { samples_and_labels, samples };

/// Batches that contain every sample exactly once, in order; the last batch may be smaller than the others.
///
/// No sample is padded or dropped. The number of microbatches is the largest divisor of the number of samples
/// that does not exceed `microbatches`, and every batch is a multiple of it, so that every batch splits into
/// equal microbatches. Example: 10,000 samples, batch 250, 8 microbatches give 40 batches of 248 and one of
/// 80. A prime number of samples gives one microbatch per batch, which is slower but correct.
class evaluation_source : public batch_source {
 public:
  /// `batch` is the maximum number of samples per step. Throws bad_input unless batch >= microbatches >= 1,
  /// and for no samples.
  evaluation_source(dataset_ptr samples, std::int64_t batch, int microbatches,
                    evaluation_part part = evaluation_part::samples_and_labels);

  /// Microbatches per batch.
  int num_microbatches() const { return num_microbatches_; }
  std::uint64_t num_steps_per_epoch() const override;
  /// Step num_steps_per_epoch() starts again at the first sample.
  batch at(std::uint64_t step) override;

 private:
  dataset_ptr samples_;
  evaluation_part part_;
  int num_microbatches_;
  std::int64_t batch_;
};

}  // namespace troupe::detail
