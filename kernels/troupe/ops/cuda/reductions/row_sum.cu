#include "troupe/ops/cuda/reductions/reductions.hpp"

#include "troupe/ops/cuda/loops/sums_over_rows.cuh"

namespace troupe::cuda {
namespace {

template <class T>
struct elements {
  static constexpr int columns_in_pack = pack<T>::size;
  const T* x;
  std::int64_t columns;

  template <int Columns>
  __device__ void operator()(std::int64_t row, std::int64_t column, float1 (&terms)[Columns]) const {
    float values[Columns];
    read_columns(x + row * columns + column, values);
#pragma unroll
    for (int i = 0; i < Columns; ++i) terms[i] = {values[i]};
  }
};

}  // namespace

void row_sum(const tensor& x, tensor& sum, gradient_mode mode) {
  auto columns = sum.num_elements();
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto rows = columns == 0 ? 0 : x.num_elements() / columns;
    auto in_packs = columns % pack<T>::size == 0 && is_aligned(x);
    auto sums =
        sums_over_rows<float1>(rows, columns, x.device(), in_packs, elements<T>{elements_of<T>(x), columns});
    store_sums<float1>(sums, 0, sum, mode);
  });
}

}  // namespace troupe::cuda
