#pragma once
#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// (x - mean) / sqrt(variance + eps) * weight + bias over the last axis. x: [..., features].
class LayerNorm : public module_of<LayerNorm> {
 public:
  explicit LayerNorm(std::int64_t features, double eps = 1e-5);
  variable forward(const variable& input) override;
  void each_parameter(const parameter_visitor& visit) override;

 private:
  double eps_;
  parameter weight_, bias_;
};

/// x / sqrt(mean of squares + eps) * weight over the last axis (Zhang, Sennrich 2019). x: [..., features].
class RMSNorm : public module_of<RMSNorm> {
 public:
  explicit RMSNorm(std::int64_t features, double eps = 1e-5);
  variable forward(const variable& input) override;
  void each_parameter(const parameter_visitor& visit) override { visit(weight_); }

 private:
  double eps_;
  parameter weight_;
};

}  // namespace troupe::nn
