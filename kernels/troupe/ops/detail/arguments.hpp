#pragma once

#include <string_view>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Throws std::invalid_argument "[operation] expected <argument> <type><extents>, got ..." unless `value`
/// has exactly this dtype and shape.
void require_argument(std::string_view operation, std::string_view argument, const tensor& value, dtype type,
                      const shape& extents);

/// The same, and `value` must be on device `target`.
void require_argument(std::string_view operation, std::string_view argument, const tensor& value, dtype type,
                      const shape& extents, device target);

/// The same, of any shape with `rank` axes.
void require_rank(std::string_view operation, std::string_view argument, const tensor& value, dtype type,
                  int rank);

/// The same, of f32, bf16 or f16 and any shape.
void require_floating(std::string_view operation, std::string_view argument, const tensor& value);

/// The same, of the dtype, shape and device of `model`.
void require_like(std::string_view operation, std::string_view argument, const tensor& value,
                  const tensor& model);

/// The same, of f32, bf16 or f16 and shape [..., C] with C >= 1.
void require_nonempty_rows(std::string_view operation, std::string_view argument, const tensor& value);

/// The shape without its last axis.
shape shape_of_rows(const tensor& value);

/// Throws std::invalid_argument unless `value` is on device `target`.
void require_on(std::string_view operation, std::string_view argument, const tensor& value, device target);

/// `extents` with the last extent replaced; the rank must be at least 1.
shape with_last_axis(const shape& extents, std::int64_t last);

/// Uninitialised, of the same dtype, shape and device.
tensor empty_like(const tensor& model);

/// Throws std::invalid_argument unless `indices` are i64 or i32 on device `target`.
void require_indices(std::string_view operation, const tensor& indices, device target);

/// The shape of gathered rows: the axes of indices, then those of a row of `values`.
shape gathered_extents(const tensor& values, const tensor& indices);

}  // namespace troupe
