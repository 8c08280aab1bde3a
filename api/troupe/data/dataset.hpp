#pragma once
#include <functional>
#include <memory>
#include <mutex>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Samples and their labels.
struct labelled_samples {
  tensor samples;  ///< [N, ...]
  /// [N], or [N, ...] if each sample has several labels. May be undefined for predictions.
  tensor labels = {};
};

/// A data set in memory, loaded when it is first used. Thread-safe; share one per process.
class dataset {
 public:
  /// Wraps samples in memory. Throws std::invalid_argument if there are labels but not one per sample.
  explicit dataset(labelled_samples content);
  /// Samples of shape `samples` that `read` loads at first use. Throws std::invalid_argument for a shape
  /// without axes and for an empty function.
  dataset(shape samples, std::function<labelled_samples()> read);

  /// [N, ...], known without loading.
  const shape& sample_extents() const { return extents_; }
  std::int64_t num_samples() const { return extents_[0]; }
  /// Loads the samples if they are not loaded yet. Throws what `read` throws, usually bad_input. Call it
  /// early from another thread to take loading off the critical path.
  void load();
  /// The samples or labels; loads them first if necessary. labels() throws bad_input if there are none.
  const tensor& samples();
  const tensor& labels();

 private:
  shape extents_;
  std::function<labelled_samples()> read_;
  std::mutex mutex_;  // guards the reading; content_ does not change after it
  labelled_samples content_;
};

using dataset_ptr = std::shared_ptr<dataset>;

}  // namespace troupe
