#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Mixed precision (torch.autocast): while it lives, matrix products, convolutions and attention of this
/// thread compute in `type` (bf16 or f16) from f32 parameters; normalisation, losses and sums are unaffected.
/// Micikevicius et al. 2018; f16 needs a loss scale (troupe/optim/loss_scaler.hpp). Throws
/// std::invalid_argument for a dtype that is not floating; f32 switches mixed precision off.
class autocast {
 public:
  explicit autocast(dtype type);
  ~autocast();
  autocast(const autocast&) = delete;
  autocast& operator=(const autocast&) = delete;

 private:
  dtype outer_;
};

/// The dtype in which products compute on this thread; f32 without autocast.
dtype compute_dtype();

}  // namespace troupe
