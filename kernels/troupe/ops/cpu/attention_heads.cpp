#include "troupe/ops/cpu/attention_heads.hpp"

#include <algorithm>

#include "troupe/ops/cpu/block_conversion.hpp"

namespace troupe::cpu {
namespace {

std::span<float> width_at(float* row, std::int64_t width) { return {row, static_cast<std::size_t>(width)}; }

}  // namespace

head_place::head_place(const tensor& out_tensor, const attention_options& options, std::int64_t index) {
  auto positions = out_tensor.extents()[1], channels = out_tensor.extents()[2];
  auto width = channels / options.num_heads;
  auto sequence = index / options.num_heads, head = index % options.num_heads;
  auto part = [&](std::int64_t which) {
    return head_columns{(sequence * positions * 3 + which) * channels + head * width, 3 * channels, positions,
                        width};
  };
  query = part(0);
  key = part(1);
  value = part(2);
  out = {sequence * positions * channels + head * width, channels, positions, width};
}

head_rows::head_rows(const tensor& from, const head_columns& columns) {
  if (from.type() == dtype::f32) {
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

head_sums::head_sums(tensor& to, const head_columns& columns) : to_(to), columns_(columns) {
  auto in_place = to.type() == dtype::f32;
  if (!in_place) sums_ = tensor::empty({columns.num_positions, columns.width});
  elements_ = in_place ? to_.values<float>().data() + columns.first : sums_.values<float>().data();
  stride_ = in_place ? columns.stride : columns.width;
  for (std::int64_t position = 0; position < columns.num_positions; ++position)
    std::fill_n(row(position), columns.width, 0.0F);
}

void head_sums::finish() {
  if (!sums_.defined()) return;
  for (std::int64_t position = 0; position < columns_.num_positions; ++position)
    write_block(to_, columns_.first + position * columns_.stride, columns_.width, row(position));
}

}  // namespace troupe::cpu
