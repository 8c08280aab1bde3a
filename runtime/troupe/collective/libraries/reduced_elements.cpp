#include "troupe/collective/libraries/reduced_elements.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "troupe/ops/convert.hpp"

namespace troupe::collective {
namespace {

template <class T>
void divide(tensor& x, int divisor) {
  for (T& each : x.values<T>()) each = static_cast<T>(each / static_cast<T>(divisor));
}

void divide_elements(tensor& x, int divisor) {
  if (x.dtype() == dtype::f32) return divide<float>(x, divisor);
  if (x.dtype() == dtype::i32) return divide<std::int32_t>(x, divisor);
  if (x.dtype() == dtype::i64) return divide<std::int64_t>(x, divisor);
  divide<std::uint8_t>(x, divisor);
}

/// The bits of a negative float rise with its magnitude: without its sign they are inverted. The function is
/// its own inverse. Of the extreme numbers it makes NaN, in both directions.
std::int32_t reordered(std::int32_t bits) {
  return bits < 0 ? bits ^ std::numeric_limits<std::int32_t>::max() : bits;
}

}  // namespace

tensor reduced_elements::widened(const tensor& x) { return cast(x, reduction_type(x.dtype())); }

tensor reduced_elements::ordered_keys(const tensor& x, reduce_op op) {
  using limits = std::numeric_limits<std::int32_t>;
  auto key_of_nan = op == reduce_op::max ? limits::max() : limits::min();
  auto keys = tensor::empty(x.shape(), dtype::i32);
  auto* key = keys.values<std::int32_t>().data();
  for (float each : x.values<float>())
    *key++ = std::isnan(each) ? key_of_nan : reordered(std::bit_cast<std::int32_t>(each));
  return keys;
}

tensor reduced_elements::from_ordered_keys(const tensor& keys) {
  auto x = tensor::empty(keys.shape(), dtype::f32);
  auto* element = x.values<float>().data();
  for (auto key : keys.values<std::int32_t>()) *element++ = std::bit_cast<float>(reordered(key));
  return x;
}

void reduced_elements::finish(tensor reduced, reduce_op op, int num_members, tensor result) {
  if (op == reduce_op::mean) divide_elements(reduced, num_members);
  auto rounded = cast(reduced, result.dtype());
  auto from = std::as_const(rounded).bytes();
  copy_bytes(from.data(), result.bytes().data(), from.size(), store_kind::cached);
}

}  // namespace troupe::collective
