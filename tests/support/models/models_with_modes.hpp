#pragma once
#include "troupe/nn/activation.hpp"
#include "troupe/nn/batch_norm.hpp"
#include "troupe/nn/checkpoint.hpp"
#include "troupe/nn/conv2d.hpp"
#include "troupe/nn/dropout.hpp"
#include "troupe/nn/flatten.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/reshape.hpp"
#include "troupe/nn/sequential.hpp"

namespace troupe::testing {

/// Norms in evaluation mode (2, 3.1, 5.norm, which is checkpointed) beside one that is trained (4.1), and a
/// dropout in evaluation mode. Samples [N, 2] of 4 classes.
inline nn::Sequential model_with_modes() {
  nn::Sequential inner;
  inner.push_back("norm", nn::BatchNorm2d(4));
  nn::Sequential model(nn::Linear(2, 16), nn::Reshape({4, 2, 2}), nn::BatchNorm2d(4),
                       nn::Sequential(nn::Conv2d(4, 4, 1), nn::BatchNorm2d(4), nn::ReLU()),
                       nn::Sequential(nn::Conv2d(4, 4, 1), nn::BatchNorm2d(4), nn::ReLU()),
                       nn::Checkpoint(inner), nn::Flatten(), nn::Dropout(0.5), nn::Linear(16, 4));
  for (int layer : {2, 5, 7}) model[layer]->eval();
  (*std::dynamic_pointer_cast<nn::Sequential>(model[3]))[1]->eval();
  return model;
}

}  // namespace troupe::testing
