#pragma once
#include "troupe/nn/init.hpp"
#include "troupe/nn/module.hpp"

namespace troupe::nn {

struct linear_options {
  bool bias = true;
  initializer weight_init = nullptr;  ///< null: init::fan_in_uniform(in_features)
  initializer bias_init = nullptr;    ///< null: the same
};

/// y = x weight^T + bias. x: [..., in_features], weight: [out_features, in_features], bias: [out_features].
class Linear : public module_of<Linear> {
 public:
  /// Throws std::invalid_argument unless both are at least 1.
  Linear(std::int64_t in_features, std::int64_t out_features, linear_options options = {});

  variable forward(const variable& input) override;
  /// max(forward(input), 0), fused, with the same bits.
  variable forward_with_relu(const variable& input);
  void each_parameter(const parameter_visitor& visit) override;

 private:
  bool has_bias_;
  parameter weight_, bias_;
};

}  // namespace troupe::nn
