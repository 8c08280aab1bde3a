#include <algorithm>
#include <type_traits>

#include "troupe/error/errors.hpp"
#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/loops/map_elements.cuh"
#include "troupe/ops/detail/broadcast.hpp"

// Three paths. Operands of one shape and dtype use map_elements. If only the dtypes differ, each thread
// branches on them. If operands broadcast, each thread computes its offsets, which is slower, but then one
// operand is usually small.

namespace troupe::cuda {
namespace {

// Integers are computed as i64; truncation to i32 gives the same wrap-around as i32 arithmetic.
struct sum_of {
  template <class T>
  __device__ T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    else
      return a + b;
  }
};
struct difference_of {
  template <class T>
  __device__ T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
    else
      return a - b;
  }
};
struct product_of {
  template <class T>
  __device__ T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    else
      return a * b;
  }
};
struct quotient_of {
  __device__ float operator()(float a, float b) const { return a / b; }
};
struct smaller_of {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return b < a || b != b ? b : a;
  }
};
struct larger_of {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return b > a || b != b ? b : a;
  }
};
struct is_equal {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a == b;
  }
};
struct is_less {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a < b;
  }
};
struct sum_with_multiple {
  float alpha;
  __device__ float operator()(float x, float y) const { return y + alpha * x; }
};
struct sum_with {
  float number;
  __device__ float operator()(float x) const { return x + number; }
};
struct product_with {
  float number;
  __device__ float operator()(float x) const { return x * number; }
};
struct clamped {
  float low, high;
  __device__ float operator()(float x) const {
    auto above = x < low ? low : x;
    return above > high ? high : above;
  }
};

/// Elements of any dtype but u8, read and written as T, which is float or std::int64_t.
template <class T>
class elements_as {
 public:
  explicit elements_as(const tensor& x)
      : elements_(const_cast<std::byte*>(x.bytes().data())), type_(x.dtype()) {}

  __device__ T read(std::int64_t index) const {
    switch (type_) {
      case dtype::f32:
        return static_cast<T>(static_cast<const float*>(elements_)[index]);
      case dtype::bf16:
        return static_cast<T>(as_float(static_cast<const bfloat16*>(elements_)[index]));
      case dtype::f16:
        return static_cast<T>(as_float(static_cast<const float16*>(elements_)[index]));
      case dtype::i32:
        return static_cast<T>(static_cast<const std::int32_t*>(elements_)[index]);
      case dtype::i64:
        return static_cast<T>(static_cast<const std::int64_t*>(elements_)[index]);
      default:
        return static_cast<T>(static_cast<const unsigned char*>(elements_)[index]);
    }
  }
  __device__ void write(std::int64_t index, T value) const {
    switch (type_) {
      case dtype::f32:
        static_cast<float*>(elements_)[index] = static_cast<float>(value);
        break;
      case dtype::bf16:
        static_cast<bfloat16*>(elements_)[index] = rounded<bfloat16>(static_cast<float>(value));
        break;
      case dtype::f16:
        static_cast<float16*>(elements_)[index] = rounded<float16>(static_cast<float>(value));
        break;
      case dtype::i32:
        static_cast<std::int32_t*>(elements_)[index] = static_cast<std::int32_t>(value);
        break;
      case dtype::i64:
        static_cast<std::int64_t*>(elements_)[index] = static_cast<std::int64_t>(value);
        break;
      default:
        static_cast<unsigned char*>(elements_)[index] = value != T{};
    }
  }

 private:
  void* elements_;
  dtype type_;
};

/// broadcast_plan as kernels take it, innermost axis first.
struct broadcast_axes {
  static constexpr int max_axes = 8, most_operands = 3;
  int count = 0;
  std::int64_t extent[max_axes] = {};
  std::int64_t stride[max_axes][most_operands] = {};

  struct offsets {
    std::int64_t offset[most_operands];
  };
  /// Index is a type that can hold the result's indices: a 64-bit division costs several 32-bit ones.
  template <class Index>
  __device__ offsets at(Index index) const {
    offsets result{};
    for (int axis = 0; axis < count; ++axis) {
      auto size = static_cast<Index>(extent[axis]);
      auto along = static_cast<std::int64_t>(index % size);
      index /= size;
      for (int i = 0; i < most_operands; ++i) result.offset[i] += along * stride[axis][i];
    }
    return result;
  }
};

/// Calls `run` with a value of the index type for this number of elements.
template <class Run>
void with_index(std::int64_t size, const Run& run) {
  if (size <= INT32_MAX) return run(std::uint32_t{});
  run(std::int64_t{});
}

constexpr int flat_lanes = 4;  // elements of a thread, a block apart

/// c = function(a, b), all of one shape.
template <class T, class Function>
__global__ void flat_kernel(Function function, std::int64_t size, elements_as<T> a, elements_as<T> b,
                            elements_as<T> c) {
  auto first = static_cast<std::int64_t>(blockIdx.x) * (flat_lanes * block_threads) + threadIdx.x;
#pragma unroll
  for (int lane = 0; lane < flat_lanes; ++lane) {
    auto i = first + lane * static_cast<std::int64_t>(block_threads);
    if (i < size) c.write(i, function(a.read(i), b.read(i)));
  }
}

broadcast_axes axes_of(std::string_view operation, const shape& result, const std::vector<shape>& operands) {
  auto plan = plan_broadcast(result, operands);
  if (plan.outer.size() >= broadcast_axes::max_axes)
    throw_invalid(operation, "operands that broadcast along at most 8 groups of axes on a GPU",
                  to_string(result));
  broadcast_axes axes;
  auto add = [&](const broadcast_plan::axis& next) {
    axes.extent[axes.count] = next.extent;
    std::ranges::copy(next.strides, axes.stride[axes.count]);
    ++axes.count;
  };
  add(plan.run);
  std::for_each(plan.outer.rbegin(), plan.outer.rend(), add);
  return axes;
}

template <class Index, class T, class Function>
__global__ void broadcast_kernel(Function function, broadcast_axes axes, std::int64_t size, elements_as<T> a,
                                 elements_as<T> b, elements_as<T> c) {
  auto i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= size) return;
  auto from = axes.at(static_cast<Index>(i));
  c.write(i, function(a.read(from.offset[0]), b.read(from.offset[1])));
}

template <class T, class Function>
void broadcast(Function function, const tensor& a, const tensor& b, tensor& c) {
  auto size = c.num_elements();
  if (a.shape() == c.shape() && b.shape() == c.shape())
    return launch(c.device(), blocks_for(size, flat_lanes * block_threads), block_threads,
                  flat_kernel<T, Function>, function, size, elements_as<T>(a), elements_as<T>(b),
                  elements_as<T>(c));
  with_index(size, [&](auto index) {
    launch(c.device(), blocks_for(size), block_threads, broadcast_kernel<decltype(index), T, Function>,
           function, axes_of("elementwise", c.shape(), {a.shape(), b.shape()}), size, elements_as<T>(a),
           elements_as<T>(b), elements_as<T>(c));
  });
}

template <class Function>
void floating(Function function, const tensor& a, const tensor& b, tensor& c) {
  if (a.shape() == b.shape() && a.dtype() == b.dtype() && c.dtype() == a.dtype())
    map_elements(function, c, a, b);
  else
    broadcast<float>(function, a, b, c);
}

template <class Function>
void floating_binary(const tensor& a, const tensor& b, tensor& c) {
  floating(Function(), a, b, c);
}

template <class Function>
void arithmetic(const tensor& a, const tensor& b, tensor& c) {
  if (is_floating(a.dtype()))
    floating(Function(), a, b, c);
  else
    broadcast<std::int64_t>(Function(), a, b, c);
}

template <class Function>
void comparison(const tensor& a, const tensor& b, tensor& c) {
  if (is_floating(a.dtype()))
    broadcast<float>(Function(), a, b, c);
  else
    broadcast<std::int64_t>(Function(), a, b, c);
}

template <class Index>
__global__ void where_kernel(broadcast_axes axes, std::int64_t size, const bool* condition,
                             elements_as<float> a, elements_as<float> b, elements_as<float> c) {
  auto i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= size) return;
  auto from = axes.at(static_cast<Index>(i));
  c.write(i, condition[from.offset[2]] ? a.read(from.offset[0]) : b.read(from.offset[1]));
}

void where(const tensor& condition, const tensor& a, const tensor& b, tensor& c) {
  auto size = c.num_elements();
  with_index(size, [&](auto index) {
    launch(c.device(), blocks_for(size), block_threads, where_kernel<decltype(index)>,
           axes_of("where", c.shape(), {a.shape(), b.shape(), condition.shape()}), size,
           elements_of<bool>(condition), elements_as<float>(a), elements_as<float>(b), elements_as<float>(c));
  });
}

struct exponential_of {
  __device__ float operator()(float x) const { return expf(x); }
};
struct logarithm_of {
  __device__ float operator()(float x) const { return logf(x); }
};
struct root_of {
  __device__ float operator()(float x) const { return sqrtf(x); }
};
struct negative_of {
  __device__ float operator()(float x) const { return -x; }
};
struct magnitude_of {
  __device__ float operator()(float x) const { return fabsf(x); }
};
struct reciprocal_of {
  __device__ float operator()(float x) const { return 1 / x; }
};

template <class Function>
void unary(const tensor& x, tensor& y) {
  map_elements(Function(), y, x);
}

void axpy(float alpha, const tensor& x, tensor& y) { floating(sum_with_multiple{alpha}, x, y, y); }

template <class Function>
void with_number(const tensor& x, float number, tensor& y) {
  map_elements(Function{number}, y, x);
}

void clamp(const tensor& x, float low, float high, tensor& y) { map_elements(clamped{low, high}, y, x); }

}  // namespace

elementwise_kernels elementwise() {
  return {.add = arithmetic<sum_of>,
          .subtract = arithmetic<difference_of>,
          .multiply = arithmetic<product_of>,
          .divide = floating_binary<quotient_of>,
          .minimum = arithmetic<smaller_of>,
          .maximum = arithmetic<larger_of>,
          .equal = comparison<is_equal>,
          .less = comparison<is_less>,
          .where = where,
          .exp = unary<exponential_of>,
          .log = unary<logarithm_of>,
          .sqrt = unary<root_of>,
          .negate = unary<negative_of>,
          .abs = unary<magnitude_of>,
          .reciprocal = unary<reciprocal_of>,
          .axpy = axpy,
          .add_number = with_number<sum_with>,
          .multiply_by_number = with_number<product_with>,
          .clamp = clamp};
}

}  // namespace troupe::cuda
