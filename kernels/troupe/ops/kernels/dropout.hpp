#pragma once
#include <array>
#include <cstdint>

#include "troupe/ops/kernels/kernel.hpp"
#include "troupe/random/philox.hpp"

namespace troupe {

/// Element i is multiplied by `factor` if word i of the philox_stream with this key and place is at least
/// `threshold`, else set to 0.
struct dropout_mask {
  philox_key key;
  std::array<std::uint32_t, 3> place;
  std::uint32_t threshold;
  float factor;
};

/// What troupe/ops/dropout.hpp needs from a device.
struct dropout_kernels {
  kernel<void(const tensor& x, const dropout_mask& mask, tensor& y)> apply{"dropout"};
};

}  // namespace troupe
