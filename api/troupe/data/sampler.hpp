#pragma once
#include <cstdint>
#include <mutex>
#include <vector>

#include "troupe/data/epoch_order.hpp"

namespace troupe {

struct sampler_options {
  std::int64_t num_samples = 0;
  /// Samples per step, over all processes.
  std::int64_t batch = 1;
  /// Seed of the order.
  std::uint64_t seed = 1;
  /// Of a data set that is a stream.
  stream_layout layout = {};
};

/// The number of complete batches per epoch; the last incomplete batch is dropped. Throws bad_input if there
/// is no complete batch.
std::uint64_t steps_per_epoch(const sampler_options& options);

/// The indices of the samples in step `global_step` (counted from 0 over all epochs): a pure function of its
/// arguments, so that every process and every restart gets the same ones. Each epoch has its own random order
/// without repetitions.
std::vector<std::int64_t> batch_indices(const sampler_options& options, std::uint64_t global_step);

/// batch_indices with a cache of the last epoch's order. Thread-safe.
class sampler {
 public:
  /// Throws bad_input as steps_per_epoch does.
  explicit sampler(const sampler_options& options);
  /// Those of the step; `reader`, if there is one, is told what is read soon.
  std::vector<std::int64_t> indices(std::uint64_t global_step, sample_reader* reader = nullptr);
  std::uint64_t num_steps_per_epoch() const { return num_steps_per_epoch_; }

 private:
  sampler_options options_;
  std::uint64_t num_steps_per_epoch_;
  std::mutex mutex_;  // guards what follows
  epoch_order order_;
};

}  // namespace troupe
