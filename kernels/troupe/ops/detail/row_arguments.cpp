#include "troupe/ops/detail/row_arguments.hpp"

#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe {

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
