#pragma once

#include <cstdint>
#include <span>

#include "troupe/tensor/tensor.hpp"

namespace troupe::cpu {

// Elements of f32, bf16 and f16 tensors as floats, a block at a time.

/// Returns elements [first, first + count) as f32: in place if `from` is f32, else converted into `scratch`.
const float* read_block(const tensor& from, std::int64_t first, std::int64_t count, std::span<float> scratch);

/// Returns where to write the elements from `first` on: in place if `to` is f32, else `scratch`.
float* block_to_write(tensor& to, std::int64_t first, std::span<float> scratch);

/// Converts and stores `written`, unless it is in place.
void write_block(tensor& to, std::int64_t first, std::int64_t count, const float* written);

// Plain arrays.
void to_float(const bfloat16* from, float* to, std::int64_t size);
void to_float(const float16* from, float* to, std::int64_t size);
void from_float(const float* from, bfloat16* to, std::int64_t size);
void from_float(const float* from, float16* to, std::int64_t size);

/// The elements of an f32, bf16 or f16 tensor as f32: the tensor itself if it is f32.
tensor float_copy(const tensor& x);

/// Rounds f32 elements to the dtype of `to`, which has as many.
void store_floats(const tensor& from, tensor& to);

}  // namespace troupe::cpu
