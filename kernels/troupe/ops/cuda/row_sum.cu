#include "troupe/ops/cuda/row_sum.hpp"

#include "troupe/ops/cuda/sums_over_rows.cuh"

namespace troupe::cuda {
namespace {

template <class T>
struct element {
  const T* x;
  std::int64_t columns;
  __device__ float1 operator()(std::int64_t row, std::int64_t column) const {
    return {as_float(x[row * columns + column])};
  }
};

}  // namespace

void row_sum(const tensor& x, tensor& sum, gradient_mode mode) {
  auto columns = sum.num_elements();
  with_floating(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto rows = columns == 0 ? 0 : x.num_elements() / columns;
    auto sums = sums_over_rows<float1>(rows, columns, x.device(), element<T>{elements_of<T>(x), columns});
    store_sums<float1>(sums, 0, sum, mode);
  });
}

}  // namespace troupe::cuda
