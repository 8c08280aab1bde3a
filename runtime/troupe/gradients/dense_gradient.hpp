#pragma once
#include "troupe/gradients/gradient_compressor.hpp"

namespace troupe::gradients {

/// Sends all elements in f32, bf16 or f16, in which their sums come back.
class dense_gradient final : public gradient_compressor {
 public:
  explicit dense_gradient(dtype sent_as) : type_(sent_as) {}

  bool sends_in_place() const override { return type_ == dtype::f32; }
  bool takes_any_device() const override { return true; }
  tensor message_of(const gradient_part& part, const tensor& gradient) override;
  std::vector<tensor> sums_from(const gradient_part& part, const std::vector<tensor>& received) override;

 private:
  dtype type_;
};

}  // namespace troupe::gradients
