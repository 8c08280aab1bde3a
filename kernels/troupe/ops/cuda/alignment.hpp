#pragma once
#include <cstdint>

#include "troupe/tensor/tensor.hpp"

namespace troupe::cuda {

/// Where matrices begin that lie `pair_elements` apart in `of`, the first at its beginning, as bits of which
/// the lowest one set is their common alignment. 0 of an undefined tensor.
inline std::uintptr_t begin_of(const tensor& of, std::int64_t pair_elements) {
  return reinterpret_cast<std::uintptr_t>(of.bytes().data()) |
         static_cast<std::uintptr_t>(pair_elements) * size_bytes(of.dtype());
}

/// The largest power of two, up to 256, that divides all addresses in `bits`.
inline std::uint32_t alignment_of(std::uintptr_t bits) {
  bits |= 256;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

}  // namespace troupe::cuda
