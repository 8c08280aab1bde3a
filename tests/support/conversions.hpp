#pragma once
#include "support/random_tensor.hpp"
#include "support/reference.hpp"

namespace troupe::testing {

/// `values` rounded to `type`, which is f32, bf16 or f16.
inline tensor rounded_to(const std::vector<double>& values, shape extents, dtype type) {
  auto result = tensor::empty(std::move(extents), type);
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto value = static_cast<float>(values[i]);
    if (type == dtype::f32) result.values<float>()[i] = value;
    if (type == dtype::bf16) result.values<bfloat16>()[i] = bfloat16(value);
    if (type == dtype::f16) result.values<float16>()[i] = float16(value);
  }
  return result;
}

/// Uniform in [-range, range], different for each name, rounded to `type`.
inline tensor random_tensor(const shape& extents, std::string_view name, dtype type, double range = 1) {
  auto values = values_of(random_tensor(extents, name));
  for (auto& value : values) value *= range;
  return rounded_to(values, extents, type);
}

/// The three floating dtypes.
constexpr dtype floating_types[] = {dtype::f32, dtype::bf16, dtype::f16};

}  // namespace troupe::testing
