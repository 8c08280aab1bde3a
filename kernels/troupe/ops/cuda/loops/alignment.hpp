#pragma once
#include <cstdint>

#include "troupe/tensor/tensor.hpp"

namespace troupe::cuda {

/// The bitwise or of the start address of `x` and the distance of its matrices, `pair_elements` elements: the
/// lowest bit set is their common alignment. 0 for an undefined tensor.
inline std::uintptr_t begin_of(const tensor& x, std::int64_t pair_elements) {
  return reinterpret_cast<std::uintptr_t>(x.bytes().data()) |
         static_cast<std::uintptr_t>(pair_elements) * size_bytes(x.dtype());
}

/// The largest power of two, up to 256, that divides all addresses in `bits`.
inline std::uint32_t alignment_of(std::uintptr_t bits) {
  bits |= 256;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

}  // namespace troupe::cuda
