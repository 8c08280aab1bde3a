#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "troupe/ops/adam_step.hpp"

namespace troupe {

// Checks of the optimizer steps' slots; each throws std::invalid_argument if the condition does not hold.

/// The weight is f32 on device `target`.
void require_weight(std::string_view operation, const tensor& weight, device target);

/// `value` is undefined, or bf16 or f16 with the weight's shape and device.
void require_low_precision(std::string_view operation, const tensor& value, const tensor& weight);

/// All of the above for each slot, and gradient and moments are like the weight.
void require_adam_slots(std::string_view operation, std::span<const adam_slot> slots);

/// base^exponent by squaring: plain multiplications, the same bits on every machine.
double power(double base, std::uint64_t exponent);

}  // namespace troupe
