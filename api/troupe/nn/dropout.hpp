#pragma once
#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// In training each element is zero with probability p, and the others are scaled by 1 / (1 - p); in
/// evaluation it is the identity. The mask is a pure function of the seed, the module's full name and the
/// pass_id (troupe/autograd/pass_id.hpp).
class Dropout : public module_of<Dropout> {
 public:
  /// Throws std::invalid_argument unless p is in [0, 1).
  explicit Dropout(double p = 0.5);
  variable forward(const variable& input) override;

 protected:
  void on_materialize(std::uint64_t seed, const std::string& prefix) override;

 private:
  double p_;
  std::uint64_t seed_ = 0;
  std::uint32_t layer_ = 0;
};

}  // namespace troupe::nn
