#include "troupe/ops/cpu/attention/attention_heads.hpp"

#include <algorithm>

#include "troupe/ops/cpu/loops/block_conversion.hpp"
#include "troupe/ops/cpu/loops/square_transpose.hpp"

namespace troupe::cpu {
namespace {

std::span<float> width_at(float* row, std::int64_t width) { return {row, static_cast<std::size_t>(width)}; }

/// to[j * to_step + i] = from[i * from_step + j] for i < rows, j < columns
void transpose(const float* from, std::int64_t from_step, std::int64_t rows, std::int64_t columns, float* to,
               std::int64_t to_step) {
  constexpr auto side = square_side<std::uint32_t>;
  std::int64_t i = 0;
  for (; i + side <= rows; i += side) {
    std::int64_t j = 0;
    for (; j + side <= columns; j += side)
      transpose_square(reinterpret_cast<const std::uint32_t*>(from + i * from_step + j), from_step,
                       reinterpret_cast<std::uint32_t*>(to + j * to_step + i), to_step);
    for (; j < columns; ++j)
      for (auto row = i; row < i + side; ++row) to[j * to_step + row] = from[row * from_step + j];
  }
  for (; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) to[j * to_step + i] = from[i * from_step + j];
}

}  // namespace

head_place::head_place(const tensor& out_tensor, const attention_options& options, std::int64_t index) {
  auto positions = out_tensor.shape()[1], channels = out_tensor.shape()[2];
  auto width = channels / options.num_heads;
  auto sequence = index / options.num_heads, head = index % options.num_heads;
  auto part = [&](std::int64_t qkv_index) {
    return head_columns{(sequence * positions * 3 + qkv_index) * channels + head * width, 3 * channels,
                        positions, width};
  };
  query = part(0);
  key = part(1);
  value = part(2);
  out = {sequence * positions * channels + head * width, channels, positions, width};
}

head_rows::head_rows(const tensor& from, const head_columns& columns) {
  if (from.dtype() == dtype::f32) {
    elements_ = from.values<float>().data() + columns.first;
    stride_ = columns.stride;
    return;
  }
  converted_ = tensor::empty({columns.num_positions, columns.width});
  auto* elements = converted_.values<float>().data();
  for (std::int64_t position = 0; position < columns.num_positions; ++position)
    read_block(from, columns.first + position * columns.stride, columns.width,
               width_at(elements + position * columns.width, columns.width));
  elements_ = elements;
  stride_ = columns.width;
}

// Pads rows by one vector: rows at distances of a power of two would map to the same cache sets.
transposed_rows::transposed_rows(const head_rows& rows, const head_columns& columns)
    : transposed_(tensor::empty({columns.width, in_vectors(columns.num_positions) + in_vectors(1)})),
      elements_(transposed_.values<float>().data()),
      stride_(transposed_.shape()[1]) {
  auto positions = columns.num_positions;
  transpose(rows.row(0), rows.stride(), positions, columns.width, elements_, stride_);
  for (std::int64_t row = 0; row < columns.width; ++row)
    std::fill(elements_ + row * stride_ + positions, elements_ + (row + 1) * stride_, 0.0F);
}

head_sums::head_sums(tensor& to, const head_columns& columns) : to_(to), columns_(columns) {
  auto in_place = to.dtype() == dtype::f32;
  if (!in_place) sums_ = tensor::empty({columns.num_positions, columns.width});
  elements_ = in_place ? to_.values<float>().data() + columns.first : sums_.values<float>().data();
  stride_ = in_place ? columns.stride : columns.width;
}

void head_sums::finish() {
  if (!sums_.defined()) return;
  for (std::int64_t position = 0; position < columns_.num_positions; ++position)
    write_block(to_, columns_.first + position * columns_.stride, columns_.width, row(position));
}

}  // namespace troupe::cpu
