#include "troupe/ops/cpu/product/product_operand.hpp"

#include "troupe/ops/cpu/loops/block_conversion.hpp"

namespace troupe::cpu {
namespace {

template <class T>
const T* first_of(const product_operand& from, const operand_range& part) {
  return reinterpret_cast<const T*>(from.elements) + part.first_lane * from.lane_step +
         part.first_inner * from.inner_step;
}

template <class T>
strided_block widened(const product_operand& from, const operand_range& part, float* scratch) {
  auto by_lanes = from.inner_is_contiguous();
  auto lines = by_lanes ? part.lanes : part.inner, size = by_lanes ? part.inner : part.lanes;
  auto step = by_lanes ? from.lane_step : from.inner_step;
  const auto* first = first_of<T>(from, part);
  for (std::int64_t line = 0; line < lines; ++line)
    to_float(first + line * step, scratch + line * size, size);
  return {scratch, part.lanes, part.inner, by_lanes ? size : 1, by_lanes ? 1 : size};
}

}  // namespace

strided_block product_operand::read(const operand_range& part, float* scratch) const {
  if (dtype == troupe::dtype::bf16) return widened<bfloat16>(*this, part, scratch);
  if (dtype == troupe::dtype::f16) return widened<float16>(*this, part, scratch);
  return {first_of<float>(*this, part), part.lanes, part.inner, lane_step, inner_step};
}

}  // namespace troupe::cpu
