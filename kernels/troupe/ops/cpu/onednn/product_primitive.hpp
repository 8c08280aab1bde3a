#pragma once
#include <oneapi/dnnl/dnnl.hpp>

#include "troupe/ops/cpu/matrix_product.hpp"

namespace troupe::cpu {

/// All parameters that decide how oneDNN computes a product.
struct product_key {
  matrix_product_shape product;
  dtype operands = dtype::f32;
  dtype result = dtype::f32;
  bool has_bias = false;
  int num_threads = 1;
  auto operator<=>(const product_key&) const = default;
};

/// oneDNN's matmul for one key. Operands are not reordered: plain layouts are as fast as oneDNN's own, and
/// transposition, bias and accumulation are fused. Throws dnnl::error.
class product_primitive {
 public:
  explicit product_primitive(const product_key& key);

  std::size_t scratchpad_bytes() const { return scratchpad_.get_desc().get_size(); }

  /// Not thread-safe.
  void run(const tensor& a, const tensor& b, const tensor& bias, tensor& c, std::byte* scratchpad);

 private:
  dnnl::memory a_, b_, bias_, c_, scratchpad_;
  dnnl::matmul primitive_;
};

}  // namespace troupe::cpu
