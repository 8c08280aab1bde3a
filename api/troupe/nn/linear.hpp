#pragma once
#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// y = x weight^T + bias. x: f32 [B, in_features], weight: [out_features, in_features], bias: [out_features].
/// Both begin uniform in +-1/sqrt(in_features), as PyTorch's do.
class Linear : public Module {
 public:
  /// Throws std::invalid_argument unless both are at least 1.
  Linear(std::int64_t in_features, std::int64_t out_features);

  variable forward(const variable& input) override;
  std::shared_ptr<Module> clone() const override { return std::make_shared<Linear>(*this); }
  void materialize(std::uint64_t seed, const std::string& prefix) override;
  std::int64_t num_parameters() const override { return (in_features_ + 1) * out_features_; }

 private:
  void collect_parameters(const std::string& prefix, std::vector<named_parameter>& into) override;

  std::int64_t in_features_, out_features_;
  parameter weight_{"weight", {}, {}};
  parameter bias_{"bias", {}, {}};
};

}  // namespace troupe::nn
