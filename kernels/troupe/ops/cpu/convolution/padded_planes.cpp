#include "troupe/ops/cpu/convolution/padded_planes.hpp"

#include <algorithm>

namespace troupe::cpu {
namespace {

/// Copies a row of a plane to the row of each phase that it belongs to.
void copy_row(const padded_planes& planes, const float* from, std::int64_t row, float* to) {
  if (planes.stride.w == 1) {
    auto size = std::min(planes.plane.w, planes.phase.w - planes.before.w);
    if (size > 0) std::copy_n(from, size, to + planes.offset_of({row, planes.before.w}));
    return;
  }
  auto end = std::min(planes.plane.w, planes.phase.w * planes.stride.w - planes.before.w);
  for (std::int64_t first = 0; first < std::min(planes.stride.w, end); ++first) {
    auto* phase = to + planes.offset_of({row, planes.before.w + first});
    for (auto column = first; column < end; column += planes.stride.w) *phase++ = from[column];
  }
}

}  // namespace

void padded_planes::copy(const float* from, std::int64_t count, float* to) const {
  auto end = std::min(plane.h, phase.h * stride.h - before.h);
  for (std::int64_t each = 0; each < count; ++each)
    for (std::int64_t row = 0; row < end; ++row)
      copy_row(*this, from + (each * plane.h + row) * plane.w, before.h + row, to + each * plane_size());
}

}  // namespace troupe::cpu
