#pragma once
#include "troupe/data_parallel/comm_hook.hpp"

namespace troupe {

/// Counts the steps that a hook has begun; part of its state in snapshots.
class step_count {
 public:
  /// Called when the reduction of each bucket begins; the first bucket begins a step.
  void on_begin(const gradient_bucket& bucket) {
    if (bucket.index == 0) ++begun_.values<std::int64_t>()[0];
  }
  /// The number of steps begun, including the current one.
  std::int64_t begun() const { return begun_.values<std::int64_t>()[0]; }
  /// A handle to the count, i64 [1].
  const tensor& value() const { return begun_; }

 private:
  tensor begun_ = tensor::zeros({1}, dtype::i64);
};

}  // namespace troupe
