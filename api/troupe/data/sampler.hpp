#pragma once
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

namespace troupe {

struct sampler_options {
  std::int64_t num_samples = 0;
  /// Samples per step, over all processes.
  std::int64_t batch = 1;
  /// Of the order: another seed, another order.
  std::uint64_t seed = 1;
};

/// The last incomplete batch of an epoch is dropped. Throws bad_input if the samples make no whole batch.
std::uint64_t steps_per_epoch(const sampler_options& options);

/// Which samples step `global_step` (counted from 0 through all epochs) takes: a pure function of its
/// arguments, whatever failed and whoever asks. In one epoch no sample comes twice; each epoch has an order
/// of its own.
std::vector<std::int64_t> batch_indices(const sampler_options& options, std::uint64_t global_step);

/// batch_indices that remembers the order of the epoch it was last asked about. Thread-safe.
class sampler {
 public:
  /// Throws bad_input as steps_per_epoch does.
  explicit sampler(const sampler_options& options);
  std::uint64_t num_steps_per_epoch() const { return num_steps_per_epoch_; }
  std::vector<std::int64_t> indices(std::uint64_t global_step);

 private:
  sampler_options options_;
  std::uint64_t num_steps_per_epoch_;
  std::mutex mutex_;  // guards what follows
  std::uint64_t epoch_ = std::numeric_limits<std::uint64_t>::max();
  std::vector<std::int64_t> order_;
};

}  // namespace troupe
