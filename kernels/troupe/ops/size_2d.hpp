#pragma once
#include <cstdint>

namespace troupe {

/// Rows and columns of an image, a kernel, a stride, ...
struct size_2d {
  std::int64_t h = 1, w = 1;
  bool operator==(const size_2d&) const = default;
};

}  // namespace troupe
