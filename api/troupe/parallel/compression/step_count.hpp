#pragma once
#include "troupe/parallel/comm_hook.hpp"

namespace troupe {

/// The steps that a hook has begun: a part of its state, so that training goes on where it was.
class step_count {
 public:
  /// To be called as the reduction of each bucket begins.
  void on_begin(const gradient_bucket& bucket) {
    if (bucket.index == 0) ++begun_.values<std::int64_t>()[0];
  }
  /// Steps begun, this one included.
  std::int64_t begun() const { return begun_.values<std::int64_t>()[0]; }
  /// A live handle, i64 [1].
  const tensor& value() const { return begun_; }

 private:
  tensor begun_ = tensor::zeros({1}, dtype::i64);
};

}  // namespace troupe
