#pragma once
#include <functional>
#include <memory>
#include <mutex>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Samples and their labels.
struct labelled_samples {
  tensor samples;  ///< [N, ...]
  /// [N], or [N, ...] where each sample has several. Undefined where there are none: that does for
  /// predictions.
  tensor labels = {};
};

/// A data set in memory, read when it is first needed. Thread-safe; share one per process.
class dataset {
 public:
  /// Samples at hand. Throws std::invalid_argument if there are labels, and not one per sample.
  explicit dataset(labelled_samples content);
  /// Samples of shape `samples` that `read` brings when they are first asked for. Throws
  /// std::invalid_argument for a shape without axes and for no function.
  dataset(shape samples, std::function<labelled_samples()> read);

  /// [N, ...], known from the beginning.
  const shape& sample_extents() const { return extents_; }
  std::int64_t num_samples() const { return extents_[0]; }
  /// Reads the samples if that has not happened yet; throws what reading throws, bad_input as a rule. Calling
  /// it early from another thread takes the reading off the critical path.
  void load();
  /// Both load first. Labels that are not there: bad_input.
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
