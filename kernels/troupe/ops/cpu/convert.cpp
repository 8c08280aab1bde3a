#include <algorithm>
#include <limits>
#include <type_traits>

#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/loops/block_conversion.hpp"
#include "troupe/ops/cpu/loops/element_type.hpp"
#include "troupe/ops/cpu/loops/parallel.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"

namespace troupe::cpu {
namespace {

template <class T>
constexpr bool is_half = std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>;

template <class To>
[[gnu::always_inline]] inline To truncated(float x) {
  // The limits as floats: the largest i32 and i64 round up to a power of two, which is out of range.
  constexpr auto lowest = static_cast<float>(std::numeric_limits<To>::min());
  constexpr To half_of_beyond = std::numeric_limits<To>::max() / 2 + 1;
  constexpr auto beyond = static_cast<float>(half_of_beyond) * 2;
  auto is_inside = static_cast<bool>((x >= lowest) & (x < beyond));
  auto inside = static_cast<To>(is_inside ? x : 0);
  auto outside = x >= beyond  ? std::numeric_limits<To>::max()
                 : x < lowest ? std::numeric_limits<To>::min()
                              : To{0};
  return is_inside ? inside : outside;
}

template <class To, class From>
[[gnu::always_inline]] inline To converted(From x) {
  if constexpr (is_half<From>)
    return converted<To>(static_cast<float>(x));
  else if constexpr (is_half<To>)
    return To(static_cast<float>(x));
  else if constexpr (std::is_same_v<To, bool>)
    return x != 0;
  else if constexpr (std::is_same_v<To, float> || std::is_same_v<From, bool>)
    return static_cast<To>(x);
  else if constexpr (std::is_same_v<From, float>)
    return truncated<To>(x);
  else
    return static_cast<To>(
        std::clamp<std::int64_t>(x, std::numeric_limits<To>::min(), std::numeric_limits<To>::max()));
}

template <class From, class To>
TROUPE_CLONES void convert(const From* x, To* y, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = converted<To>(x[i]);
}

/// Elements that one thread converts at a time.
constexpr std::int64_t elements_in_block = 16384;

template <class Run>
void for_each_block(std::int64_t size, const Run& run) {
  parallel_for((size + elements_in_block - 1) / elements_in_block, size, [&](std::int64_t block) {
    auto first = block * elements_in_block;
    run(first, std::min(elements_in_block, size - first));
  });
}

template <class From, class To>
void cast_of(const tensor& x, tensor& y) {
  for_each_block(x.num_elements(), [&](std::int64_t first, std::int64_t count) {
    const auto* from = x.values<From>().data() + first;
    auto* to = y.values<To>().data() + first;
    if constexpr (std::is_same_v<From, float> && std::is_same_v<To, bfloat16>)
      from_float(from, to, count);
    else
      convert<From, To>(from, to, count);
  });
}

void cast(const tensor& x, tensor& y) {
  with_element_type(x.dtype(), [&](auto from) {
    with_element_type(y.dtype(), [&](auto to) {
      cast_of<typename decltype(from)::type, typename decltype(to)::type>(x, y);
    });
  });
}

TROUPE_CLONES void scale_bytes(const std::uint8_t* x, float scale, float* y, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = static_cast<float>(x[i]) * scale;
}

void to_float(const tensor& x, float scale, tensor& y) {
  for_each_block(x.num_elements(), [&](std::int64_t first, std::int64_t count) {
    scale_bytes(x.values<std::uint8_t>().data() + first, scale, y.values<float>().data() + first, count);
  });
}

}  // namespace

convert_kernels convert() { return {.cast = cast, .to_float = to_float}; }

}  // namespace troupe::cpu
