#pragma once
#include <cstdint>

#include "troupe/ops/size_2d.hpp"

namespace troupe::cpu {

/// Planes [rows, columns] with zeros around them, whose pixels are sorted by phase, their row and column
/// modulo the stride: a window's pixels of one phase that neighbouring windows see follow each other in
/// memory.
struct padded_planes {
  size_2d plane;   ///< of the planes that are copied
  size_2d before;  ///< rows and columns of zeros above and left of them
  size_2d stride;
  size_2d phase;  ///< rows and columns of one phase; what lies beyond is left out

  std::int64_t plane_size() const { return stride.h * stride.w * phase.h * phase.w; }
  /// Where a padded plane's pixel lies, in floats.
  std::int64_t offset_of(size_2d pixel) const {
    auto number = pixel.h % stride.h * stride.w + pixel.w % stride.w;
    return (number * phase.h + pixel.h / stride.h) * phase.w + pixel.w / stride.w;
  }

  /// Copies `count` planes to where there were zeros, or planes of this layout, before.
  void copy(const float* from, std::int64_t count, float* to) const;
};

/// Floats to leave after padded planes: packing reads whole vectors, also past the end.
constexpr std::int64_t floats_after_planes = 64;

}  // namespace troupe::cpu
