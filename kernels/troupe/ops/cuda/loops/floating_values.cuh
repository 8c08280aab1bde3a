#pragma once
#include "troupe/ops/cuda/loops/elements.cuh"

namespace troupe::cuda {

/// Access to an optional tensor of f32, bf16 or f16 with a run-time dtype, for small operands whose dtype may
/// differ from the large ones'. The branch on the dtype is uniform over all threads.
class floating_values {
 public:
  explicit floating_values(const tensor& x)
      : elements_(x.bytes().data()),
        type_(x.dtype()),
        has_float_packs_(type_ == dtype::f32 && is_aligned(x)) {}

  /// `otherwise` if there is no tensor.
  __device__ float at(std::int64_t index, float otherwise) const {
    if (!elements_) return otherwise;
    if (type_ == dtype::f32) return static_cast<const float*>(elements_)[index];
    if (type_ == dtype::bf16) return as_float(static_cast<const bfloat16*>(elements_)[index]);
    return as_float(static_cast<const float16*>(elements_)[index]);
  }

  /// Elements [first, first + Count), where `first` is a multiple of Count, which is one of 4.
  template <int Count>
  __device__ void read(std::int64_t first, float otherwise, float (&values)[Count]) const {
    if (elements_ && has_float_packs_) {
#pragma unroll
      for (int i = 0; i < Count; i += pack<float>::size) {
        auto some = load_pack(static_cast<const float*>(elements_) + first + i);
#pragma unroll
        for (int lane = 0; lane < some.size; ++lane) values[i + lane] = some.lanes[lane];
      }
    } else {
#pragma unroll
      for (int i = 0; i < Count; ++i) values[i] = at(first + i, otherwise);
    }
  }

 private:
  const void* elements_;
  dtype type_;
  bool has_float_packs_;
};

}  // namespace troupe::cuda
