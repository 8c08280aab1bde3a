#include "troupe/contents/box.hpp"

#include <algorithm>
#include <cstddef>

namespace troupe {
namespace {

/// Elements of one index of `axis`.
std::int64_t row_size(const box& whole, std::size_t axis) {
  std::int64_t size = 1;
  for (auto next = axis + 1; next < whole.extent.size(); ++next) size *= whole.extent[next];
  return size;
}

/// `whole` has one index on each axis before `axis`. A range that begins or ends within a row has up to three
/// pieces: the end of a row, whole rows, the beginning of a row.
void append_elements(std::vector<box>& pieces, box whole, std::size_t axis, std::int64_t begin,
                     std::int64_t end) {
  if (begin >= end) return;
  auto row = row_size(whole, axis);
  auto first = begin / row;
  if (begin % row == 0 && end % row == 0) {
    whole.offset[axis] += first;
    whole.extent[axis] = (end - begin) / row;
    return pieces.push_back(std::move(whole));
  }
  if (first == (end - 1) / row) {
    whole.offset[axis] += first;
    whole.extent[axis] = 1;
    return append_elements(pieces, std::move(whole), axis + 1, begin - first * row, end - first * row);
  }
  auto rows_begin = (begin + row - 1) / row * row, rows_end = end / row * row;
  append_elements(pieces, whole, axis, begin, rows_begin);
  append_elements(pieces, whole, axis, rows_begin, rows_end);
  append_elements(pieces, whole, axis, rows_end, end);
}

}  // namespace

std::string to_string(const box& shown) {
  std::string text = "[";
  for (std::size_t axis = 0; axis < shown.offset.size(); ++axis)
    text += (axis == 0 ? "" : ", ") + std::to_string(shown.offset[axis]) + ":" +
            std::to_string(shown.offset[axis] + shown.extent[axis]);
  return text + "]";
}

box whole_box(const shape& extents) {
  return {std::vector<std::int64_t>(extents.extents().size(), 0), extents.extents()};
}

std::int64_t num_elements(const box& counted) {
  std::int64_t product = 1;
  for (auto extent : counted.extent) product *= extent;
  return product;
}

bool is_inside(const box& inner, const shape& extents) {
  const auto& whole = extents.extents();
  if (inner.offset.size() != whole.size() || inner.extent.size() != whole.size()) return false;
  for (std::size_t axis = 0; axis < whole.size(); ++axis)
    if (inner.offset[axis] < 0 || inner.extent[axis] < 0 || inner.offset[axis] > whole[axis] ||
        inner.extent[axis] > whole[axis] - inner.offset[axis])
      return false;
  return true;
}

std::optional<box> intersection(const box& a, const box& b) {
  box common;
  for (std::size_t axis = 0; axis < a.offset.size(); ++axis) {
    auto begin = std::max(a.offset[axis], b.offset[axis]);
    auto end = std::min(a.offset[axis] + a.extent[axis], b.offset[axis] + b.extent[axis]);
    if (begin >= end) return {};
    common.offset.push_back(begin);
    common.extent.push_back(end - begin);
  }
  return common;
}

std::vector<box> difference(const box& from, const box& taken) {
  auto common = intersection(from, taken);
  if (!common) return num_elements(from) == 0 ? std::vector<box>() : std::vector{from};
  std::vector<box> rest;
  auto left = from;  // shrinks to `common`, axis by axis
  for (std::size_t axis = 0; axis < from.offset.size(); ++axis) {
    auto cut = [&](std::int64_t begin, std::int64_t end) {
      if (begin >= end) return;
      rest.push_back(left);
      rest.back().offset[axis] = begin;
      rest.back().extent[axis] = end - begin;
    };
    auto common_end = common->offset[axis] + common->extent[axis];
    cut(left.offset[axis], common->offset[axis]);
    cut(common_end, left.offset[axis] + left.extent[axis]);
    left.offset[axis] = common->offset[axis];
    left.extent[axis] = common->extent[axis];
  }
  return rest;
}

std::vector<box> elements_of(const box& whole, std::int64_t begin, std::int64_t end) {
  std::vector<box> pieces;
  if (whole.extent.empty() && begin < end) return {whole};
  append_elements(pieces, whole, 0, begin, end);
  return pieces;
}

}  // namespace troupe
