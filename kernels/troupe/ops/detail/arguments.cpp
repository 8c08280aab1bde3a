#include "troupe/ops/detail/arguments.hpp"

#include <string>
#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe {

void require_argument(std::string_view operation, std::string_view argument, const tensor& value, dtype type,
                      const shape& extents) {
  if (value.defined() && value.dtype() == type && value.shape() == extents) return;
  throw_invalid(operation, std::string(argument) + " " + std::string(to_string(type)) + to_string(extents),
                describe(value));
}

void require_argument(std::string_view operation, std::string_view argument, const tensor& value, dtype type,
                      const shape& extents, device target) {
  require_argument(operation, argument, value, type, extents);
  if (value.device() == target) return;
  throw_invalid(operation, std::string(argument) + " on " + to_string(target), describe(value));
}

void require_rank(std::string_view operation, std::string_view argument, const tensor& value, dtype type,
                  int rank) {
  if (value.defined() && value.dtype() == type && value.shape().rank() == rank) return;
  throw_invalid(
      operation,
      std::string(argument) + " " + std::string(to_string(type)) + " with " + std::to_string(rank) + " axes",
      describe(value));
}

void require_floating(std::string_view operation, std::string_view argument, const tensor& value) {
  if (value.defined() && is_floating(value.dtype())) return;
  throw_invalid(operation, std::string(argument) + " of f32, bf16 or f16", describe(value));
}

void require_like(std::string_view operation, std::string_view argument, const tensor& value,
                  const tensor& model) {
  if (value.defined() && value.dtype() == model.dtype() && value.shape() == model.shape() &&
      value.device() == model.device())
    return;
  throw_invalid(operation, std::string(argument) + " " + describe(model), describe(value));
}

void require_nonempty_rows(std::string_view operation, std::string_view argument, const tensor& value) {
  require_floating(operation, argument, value);
  if (value.shape().rank() >= 1 && value.shape()[-1] >= 1) return;
  throw_invalid(operation, std::string(argument) + " [..., C] with C >= 1", describe(value));
}

shape shape_of_rows(const tensor& value) {
  auto extents = value.shape().extents();
  extents.pop_back();
  return shape(std::move(extents));
}

void require_on(std::string_view operation, std::string_view argument, const tensor& value, device target) {
  if (value.device() == target) return;
  throw_invalid(operation, std::string(argument) + " on " + to_string(target), describe(value));
}

shape with_last_axis(const shape& extents, std::int64_t last) {
  auto changed = extents.extents();
  changed.back() = last;
  return shape(std::move(changed));
}

tensor empty_like(const tensor& model) { return tensor::empty(model.shape(), model.dtype(), model.device()); }

void require_indices(std::string_view operation, const tensor& indices, device target) {
  auto is_integer = indices.dtype() == dtype::i64 || indices.dtype() == dtype::i32;
  if (!indices.defined() || !is_integer || indices.device() != target)
    throw_invalid(operation, "indices of i64 or i32 on " + to_string(target), describe(indices));
}

shape gathered_extents(const tensor& values, const tensor& indices) {
  auto extents = indices.shape().extents();
  const auto& row = values.shape().extents();
  extents.insert(extents.end(), row.begin() + 1, row.end());
  return shape(std::move(extents));
}

}  // namespace troupe
