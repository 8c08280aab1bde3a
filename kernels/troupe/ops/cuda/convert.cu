#include <limits>
#include <type_traits>

#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/loops/elements.cuh"
#include "troupe/ops/cuda/loops/launch.cuh"

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
  launch(x.device(), blocks_for((size + lanes - 1) / lanes), block_threads, convert_kernel<From, To>,
         elements_of<From>(x), scale, size, is_aligned(x) && is_aligned(y), elements_of<To>(y));
}

/// Calls `visit` with a value of the C++ type of `type`, floating or not.
template <class Visit>
void with_any(dtype type, const Visit& visit) {
  if (is_floating(type)) return with_floating(type, visit);
  if (type == dtype::u8) return visit(std::uint8_t{});
  if (type == dtype::i32) return visit(std::int32_t{});
  if (type == dtype::i64) return visit(std::int64_t{});
  visit(bool{});
}

template <class T>
constexpr bool is_float_storage = !std::is_integral_v<T>;

template <class T>
constexpr T lowest = std::numeric_limits<T>::min();
template <class T>
constexpr T highest = std::numeric_limits<T>::max();

/// Truncates towards zero and saturates; 0 for NaN.
template <class To>
__device__ To truncated(float x) {
  // The largest of 32 and 64 bits as a float is a power of two, which is out of range.
  constexpr auto beyond = static_cast<float>(highest<To> / 2 + 1) * 2;
  if (x != x) return 0;
  if (x >= beyond) return highest<To>;
  return x < static_cast<float>(lowest<To>) ? lowest<To> : static_cast<To>(x);
}

/// As the public function cast.
template <class To, class From>
__device__ To converted(From x) {
  if constexpr (is_float_storage<To>)
    return rounded<To>(read_as_float(x));
  else if constexpr (std::is_same_v<To, bool> && is_float_storage<From>)
    return as_float(x) != 0;
  else if constexpr (std::is_same_v<To, bool>)
    return x != 0;
  else if constexpr (is_float_storage<From>)
    return truncated<To>(as_float(x));
  else
    return static_cast<To>(
        min(max(static_cast<std::int64_t>(x), std::int64_t{lowest<To>}), std::int64_t{highest<To>}));
}

template <class From, class To>
__global__ void cast_kernel(const From* x, std::int64_t size, To* y) {
  auto i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < size) y[i] = converted<To>(x[i]);
}

/// From or to integers and booleans.
void cast_plainly(const tensor& x, tensor& y) {
  auto size = x.num_elements();
  with_any(x.dtype(), [&](auto from) {
    with_any(y.dtype(), [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      launch(x.device(), blocks_for(size), block_threads, cast_kernel<From, To>, elements_of<From>(x), size,
             elements_of<To>(y));
    });
  });
}

void cast(const tensor& x, tensor& y) {
  if (!is_floating(x.dtype()) || !is_floating(y.dtype())) return cast_plainly(x, y);
  with_floating(x.dtype(), [&](auto from) {
    with_floating(y.dtype(), [&](auto to) { convert_elements<decltype(from), decltype(to)>(x, 1, y); });
  });
}

void to_float(const tensor& x, float scale, tensor& y) { convert_elements<std::uint8_t, float>(x, scale, y); }

}  // namespace

convert_kernels convert() { return {.cast = cast, .to_float = to_float}; }

}  // namespace troupe::cuda
