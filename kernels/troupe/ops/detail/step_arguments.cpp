#include "troupe/ops/detail/step_arguments.hpp"

#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/ops/detail/arguments.hpp"

namespace troupe {

void require_weight(std::string_view operation, const tensor& weight, device target) {
  require_argument(operation, "weight", weight, dtype::f32, weight.shape());
  if (weight.device() == target) return;
  throw_invalid(operation, "all weights on " + to_string(target), describe(weight));
}

void require_low_precision(std::string_view operation, const tensor& value, const tensor& weight) {
  if (!value.defined()) return;
  auto is_low = value.dtype() == dtype::bf16 || value.dtype() == dtype::f16;
  if (is_low && value.shape() == weight.shape() && value.device() == weight.device()) return;
  throw_invalid(operation, "low_precision of bf16 or f16 like weight " + describe(weight), describe(value));
}

void require_adam_slots(std::string_view operation, std::span<const adam_slot> slots) {
  for (const auto& each : slots) {
    require_weight(operation, each.weight, slots.front().weight.device());
    require_like(operation, "gradient", each.gradient, each.weight);
    require_like(operation, "exp_avg", each.exp_avg, each.weight);
    require_like(operation, "exp_avg_sq", each.exp_avg_sq, each.weight);
    require_low_precision(operation, each.low_precision, each.weight);
  }
}

double power(double base, std::uint64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}

}  // namespace troupe
