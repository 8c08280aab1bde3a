#include "troupe/ops/cuda/reductions/reductions.hpp"

#include "troupe/ops/cuda/loops/map_elements.cuh"
#include "troupe/ops/cuda/loops/rows.cuh"
#include "troupe/ops/reduction.hpp"

// Each thread block sums a part of a tensor; one block adds the parts. The assignment to threads depends only
// on the number of elements.

namespace troupe::cuda {
namespace {

struct double_sum {
  static constexpr double neutral = 0;
  __device__ double operator()(double a, double b) const { return a + b; }
};

struct value_of {
  __device__ double operator()(float x) const { return x; }
};
struct square_of {
  __device__ double operator()(float x) const { return static_cast<double>(x) * x; }
};
struct squared_difference {
  __device__ double operator()(float a, float b) const {
    auto difference = static_cast<double>(a) - b;
    return difference * difference;
  }
};
struct is_not_finite {
  __device__ double operator()(float x) const { return isfinite(x) ? 0 : 1; }
};
struct product_with {
  float factor;
  __device__ float operator()(float x) const { return x * factor; }
};

constexpr std::int64_t max_parts = 512, part_elements = 16 * block_threads;

std::int64_t num_parts(const tensor& x) {
  return std::min(max_parts, (x.num_elements() + part_elements - 1) / part_elements);
}

template <class Term, class... T>
__global__ void part_kernel(Term term, std::int64_t size, double* parts, const T*... x) {
  auto step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  double total = 0;
  for (auto i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < size; i += step)
    total += term(as_float(x[i])...);
  total = reduce_block<double_sum>(total);
  if (threadIdx.x == 0) parts[blockIdx.x] = total;
}

__global__ void total_kernel(const double* parts, std::int64_t count, double* result) {
  double total = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) total += parts[i];
  total = reduce_block<double_sum>(total);
  if (threadIdx.x == 0) *result = total;
}

tensor doubles(std::int64_t count, device target) {
  return tensor::empty({count * static_cast<std::int64_t>(sizeof(double))}, dtype::u8, target);
}

/// The sum of the parts' sums on `target`.
double added(const tensor& parts, std::int64_t count, device target) {
  auto result = doubles(1, target);
  launch(target, 1, block_threads, total_kernel, elements_of<double>(parts), count,
         elements_of<double>(result));
  auto here = result.to({});
  return *elements_of<double>(here);
}

/// Writes the sums of the parts of term(x...), tensors of one shape and dtype.
template <class Term, class... Tensors>
void sum_parts(Term term, double* parts, const tensor& model, const Tensors&... x) {
  if (model.num_elements() == 0) return;
  with_floating(model.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch(model.device(), static_cast<unsigned>(num_parts(model)), block_threads,
           part_kernel<Term, decltype((void)x, T{})...>, term, model.num_elements(), parts,
           elements_of<T>(x)...);
  });
}

/// A thread block for each block of squares_block_elements.
template <class T>
__global__ void block_squares_kernel(const T* x, std::int64_t size, double* squares) {
  auto first = static_cast<std::int64_t>(blockIdx.x) * squares_block_elements;
  auto end = first + squares_block_elements < size ? first + squares_block_elements : size;
  double total = 0;
  for (auto i = first + threadIdx.x; i < end; i += blockDim.x) total += square_of()(as_float(x[i]));
  total = reduce_block<double_sum>(total);
  if (threadIdx.x == 0) squares[blockIdx.x] = total;
}

template <class Term>
double total_of(std::span<const tensor> tensors, Term term) {
  auto target = tensors.front().device();
  std::int64_t count = 0;
  for (const auto& each : tensors) count += num_parts(each);
  auto parts = doubles(count, target);
  auto* next = elements_of<double>(parts);
  for (const auto& each : tensors) {
    sum_parts(term, next, each, each);
    next += num_parts(each);
  }
  return added(parts, count, target);
}

}  // namespace

double total_sum(const tensor& x) { return total_of(std::span(&x, 1), value_of()); }
double sum_of_squares(std::span<const tensor> tensors) { return total_of(tensors, square_of()); }
std::vector<double> block_squares(std::span<const tensor> tensors) {
  std::int64_t count = 0;
  for (const auto& each : tensors) count += num_squares_blocks(each);
  if (count == 0) return {};
  auto squares = doubles(count, tensors.front().device());
  auto* next = elements_of<double>(squares);
  for (const auto& each : tensors) {
    auto num_blocks = num_squares_blocks(each);
    if (num_blocks == 0) continue;
    with_floating(each.dtype(), [&](auto zero) {
      using T = decltype(zero);
      launch(each.device(), static_cast<unsigned>(num_blocks), block_threads, block_squares_kernel<T>,
             elements_of<T>(each), each.num_elements(), next);
    });
    next += num_blocks;
  }
  auto here = squares.to({});
  const auto* first = elements_of<double>(here);
  return {first, first + count};
}

double sum_of_squared_differences(const tensor& a, const tensor& b) {
  auto parts = doubles(num_parts(a), a.device());
  sum_parts(squared_difference(), elements_of<double>(parts), a, a, b);
  return added(parts, num_parts(a), a.device());
}

bool all_finite(std::span<const tensor> tensors) { return total_of(tensors, is_not_finite()) == 0; }

bool scale_all(std::span<const tensor> tensors, float factor) {
  for (auto each : tensors) map_elements(product_with{factor}, each, each);
  return cuda::all_finite(tensors);
}

}  // namespace troupe::cuda
