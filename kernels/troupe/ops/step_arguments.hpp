#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "troupe/ops/adam_step.hpp"

namespace troupe {

// What the optimizers' steps ask of their slots; each throws std::invalid_argument otherwise.

/// f32 on `where`.
void require_weight(std::string_view operation, const tensor& weight, device where);

/// Undefined, or bf16 or f16 of the weight's shape and device.
void require_low_precision(std::string_view operation, const tensor& value, const tensor& weight);

/// All of the above, and the others like the weight.
void require_adam_slots(std::string_view operation, std::span<const adam_slot> slots);

/// base^exponent by squaring: plain multiplications, the same bits on every machine.
double power(double base, std::uint64_t exponent);

}  // namespace troupe
