#include <algorithm>
#include <numeric>

#include "troupe/ops/cpu/families.hpp"
#include "troupe/ops/cpu/parallel.hpp"

namespace troupe::cpu {
namespace {

/// Whether the element at index a comes before that at b.
template <class T>
struct comes_before {
  const T* row;
  bool operator()(std::int64_t a, std::int64_t b) const {
    auto x = static_cast<float>(row[a]), y = static_cast<float>(row[b]);
    auto x_is_nan = x != x, y_is_nan = y != y;
    if (x_is_nan != y_is_nan) return x_is_nan;
    return x > y || (!(x < y) && a < b);
  }
};

/// A heap of the k best so far, the worst of them at its top: most elements cost one comparison.
template <class T>
void select_row(const T* row, std::int64_t size, T* values, std::int64_t* indices, std::int64_t k) {
  comes_before<T> before{row};
  std::iota(indices, indices + k, std::int64_t{0});
  std::make_heap(indices, indices + k, before);
  for (std::int64_t i = k; i < size; ++i) {
    if (!before(i, indices[0])) continue;
    std::pop_heap(indices, indices + k, before);
    indices[k - 1] = i;
    std::push_heap(indices, indices + k, before);
  }
  std::sort_heap(indices, indices + k, before);
  for (std::int64_t i = 0; i < k; ++i) values[i] = row[indices[i]];
}

template <class T>
void select_rows(const tensor& x, tensor& values, tensor& indices) {
  auto size = x.extents()[-1], k = values.extents()[-1];
  const auto* elements = x.values<T>().data();
  auto* best = values.values<T>().data();
  auto* places = indices.values<std::int64_t>().data();
  parallel_for(x.num_elements() / size, std::max<std::int64_t>(1, 16384 / size), [&](std::int64_t row) {
    select_row(elements + row * size, size, best + row * k, places + row * k, k);
  });
}

void select(const tensor& x, tensor& values, tensor& indices) {
  if (x.type() == dtype::f32) return select_rows<float>(x, values, indices);
  if (x.type() == dtype::bf16) return select_rows<bfloat16>(x, values, indices);
  select_rows<float16>(x, values, indices);
}

}  // namespace

top_k_kernels top_k() { return {.select = select}; }

}  // namespace troupe::cpu
