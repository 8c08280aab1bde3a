#include "troupe/collective/libraries/reduced_elements.hpp"

#include <utility>

#include "troupe/ops/convert.hpp"

namespace troupe {
namespace {

template <class T>
void divide(tensor& x, int by) {
  for (T& each : x.values<T>()) each = static_cast<T>(each / static_cast<T>(by));
}

void divide_elements(tensor& x, int by) {
  if (x.dtype() == dtype::f32) return divide<float>(x, by);
  if (x.dtype() == dtype::i32) return divide<std::int32_t>(x, by);
  if (x.dtype() == dtype::i64) return divide<std::int64_t>(x, by);
  divide<std::uint8_t>(x, by);
}

}  // namespace

tensor reduced_elements::widened(const tensor& x) { return cast(x, reduction_type(x.dtype())); }

void reduced_elements::finish(tensor reduced, reduce_op op, int num_members, tensor result) {
  if (op == reduce_op::mean) divide_elements(reduced, num_members);
  auto rounded = cast(reduced, result.dtype());
  auto from = std::as_const(rounded).bytes();
  copy_bytes(from.data(), result.bytes().data(), from.size(), store_kind::cached);
}

}  // namespace troupe
