#pragma once
#include <troupe/troupe.hpp>

namespace troupe::testing {

/// Two layers, of which each pass uses one, by the sign of the first number that comes in, so that each has
/// no gradient in some microbatches; and one that no pass uses.
class either_layer : public nn::module_of<either_layer> {
 public:
  variable forward(const variable& input) override {
    bool is_positive = input.value.values<float>()[0] > 0;
    return is_positive ? positive.forward(input) : negative.forward(input);
  }
  void each_child(const child_visitor& visit) override {
    visit("positive", positive);
    visit("negative", negative);
    visit("unused", unused);
  }
  nn::Linear positive{160, 160}, negative{160, 160}, unused{160, 160};
};

inline nn::Sequential conditional_model() {
  return nn::Sequential(nn::Linear(2, 160), either_layer(), nn::ReLU(), nn::Linear(160, 4));
}

}  // namespace troupe::testing
