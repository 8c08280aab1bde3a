#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "troupe/tensor/shape.hpp"

namespace troupe {

/// A box of a tensor's elements: a range of indices on each axis. That of a scalar has no axes and one
/// element.
struct box {
  std::vector<std::int64_t> offset, extent;  ///< [rank] each
  bool operator==(const box&) const = default;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(offset, extent);
  }
};

/// "[0:128, 64:128]"
std::string to_string(const box& shown);

box whole_box(const shape& extents);
std::int64_t num_elements(const box& counted);
/// Whether it has the axes of `extents` and no index outside. For any numbers.
bool is_inside(const box& inner, const shape& extents);

// Of boxes of one tensor.

/// None: they have no element in common.
std::optional<box> intersection(const box& a, const box& b);
/// The elements of `from` that are not in `taken`, as disjoint boxes.
std::vector<box> difference(const box& from, const box& taken);
/// The elements [begin, end) of `whole` in row-major order, as disjoint boxes: one after the other, each in
/// row-major order, they are in that order too.
std::vector<box> elements_of(const box& whole, std::int64_t begin, std::int64_t end);

}  // namespace troupe
