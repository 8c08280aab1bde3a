#include "troupe/ops/cuda/total_reduction.hpp"

#include "troupe/ops/cuda/map_elements.cuh"
#include "troupe/ops/cuda/rows.cuh"

// Each block adds up its part of a tensor; one block adds the parts. Which elements and parts a thread takes
// depends on their number only.

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

constexpr std::int64_t most_parts = 512, part_elements = 16 * block_threads;

std::int64_t num_parts(const tensor& of) {
  return std::min(most_parts, (of.num_elements() + part_elements - 1) / part_elements);
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

tensor doubles(std::int64_t count, device where) {
  return tensor::empty({count * static_cast<std::int64_t>(sizeof(double))}, dtype::u8, where);
}

/// Of parts' sums on `where`.
double added(const tensor& parts, std::int64_t count, device where) {
  auto result = doubles(1, where);
  launch(where, 1, block_threads, total_kernel, elements_of<double>(parts), count,
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

template <class Term>
double total_of(std::span<const tensor> of, Term term) {
  auto where = of.front().device();
  std::int64_t count = 0;
  for (const auto& each : of) count += num_parts(each);
  auto parts = doubles(count, where);
  auto* next = elements_of<double>(parts);
  for (const auto& each : of) {
    sum_parts(term, next, each, each);
    next += num_parts(each);
  }
  return added(parts, count, where);
}

}  // namespace

double total_sum(const tensor& x) { return total_of(std::span(&x, 1), value_of()); }
double sum_of_squares(std::span<const tensor> of) { return total_of(of, square_of()); }
double sum_of_squared_differences(const tensor& a, const tensor& b) {
  auto parts = doubles(num_parts(a), a.device());
  sum_parts(squared_difference(), elements_of<double>(parts), a, a, b);
  return added(parts, num_parts(a), a.device());
}

bool all_finite(std::span<const tensor> of) { return total_of(of, is_not_finite()) == 0; }

bool scale_all(std::span<const tensor> of, float factor) {
  for (auto each : of) map_elements(product_with{factor}, each, each);
  return all_finite(of);
}

}  // namespace troupe::cuda
