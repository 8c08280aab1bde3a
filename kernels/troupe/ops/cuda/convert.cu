#include "troupe/ops/cuda/elements.cuh"
#include "troupe/ops/cuda/families.hpp"
#include "troupe/ops/cuda/launch.cuh"

namespace troupe::cuda {
namespace {

/// Elements that one thread converts: whole 16-byte words of either type.
constexpr int lanes = 16;

template <class T>
struct alignas(16) words {
  T lane[lanes];
};

template <class From>
__device__ float read_as_float(From value) {
  if constexpr (std::is_integral_v<From>)
    return static_cast<float>(value);
  else
    return as_float(value);
}

/// y = x * scale, rounded to To.
template <class From, class To>
__global__ void convert_kernel(const From* x, float scale, std::int64_t size, bool are_aligned, To* y) {
  auto first = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * lanes;
  if (are_aligned && first + lanes <= size) {
    words<From> from;
    words<To> to;
#pragma unroll
    for (unsigned i = 0; i < sizeof(from) / sizeof(uint4); ++i) {
      auto word = reinterpret_cast<const uint4*>(x + first)[i];
      memcpy(reinterpret_cast<char*>(&from) + i * sizeof(word), &word, sizeof(word));
    }
#pragma unroll
    for (int i = 0; i < lanes; ++i) to.lane[i] = rounded<To>(read_as_float(from.lane[i]) * scale);
#pragma unroll
    for (unsigned i = 0; i < sizeof(to) / sizeof(uint4); ++i) {
      uint4 word;
      memcpy(&word, reinterpret_cast<const char*>(&to) + i * sizeof(word), sizeof(word));
      reinterpret_cast<uint4*>(y + first)[i] = word;
    }
    return;
  }
  for (auto i = first; i < first + lanes && i < size; ++i) y[i] = rounded<To>(read_as_float(x[i]) * scale);
}

template <class From, class To>
void convert_elements(const tensor& x, float scale, tensor& y) {
  auto size = x.num_elements();
  launch(x.where(), blocks_for((size + lanes - 1) / lanes), block_threads, convert_kernel<From, To>,
         elements_of<From>(x), scale, size, is_aligned(x) && is_aligned(y), elements_of<To>(y));
}

void cast(const tensor& x, tensor& y) {
  if (!is_floating(x.type()) || !is_floating(y.type()))
    throw_invalid("cast", "f32, bf16 or f16, and to one of them, on a GPU (cast others on the CPU)",
                  describe(x) + " to " + std::string(to_string(y.type())));
  with_floating(x.type(), [&](auto from) {
    with_floating(y.type(), [&](auto to) { convert_elements<decltype(from), decltype(to)>(x, 1, y); });
  });
}

void to_float(const tensor& x, float scale, tensor& y) { convert_elements<std::uint8_t, float>(x, scale, y); }

}  // namespace

convert_kernels convert() { return {.cast = cast, .to_float = to_float}; }

}  // namespace troupe::cuda
