#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "troupe/ops/cpu/block_conversion.hpp"
#include "troupe/ops/cpu/families.hpp"
#include "troupe/ops/cpu/in_blocks.hpp"
#include "troupe/ops/cpu/vector_clones.hpp"

namespace troupe::cpu {
namespace {

TROUPE_CLONES void scaled(const std::uint8_t* x, float factor, float* y, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = static_cast<float>(x[i]) * factor;
}

template <class T>
constexpr bool is_half = std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>;

/// What a number of one type is in another.
template <class To, class From>
To converted(From from) {
  if constexpr (is_half<From>) {
    return converted<To>(static_cast<float>(from));
  } else if constexpr (is_half<To>) {
    return To(static_cast<float>(from));
  } else if constexpr (std::is_same_v<To, bool>) {
    return from != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(from)) return 0;
    // The largest i64 is no f32; at 2^63 it is out of range already.
    if (from >= static_cast<float>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    if (from <= static_cast<float>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    return static_cast<To>(from);
  } else if constexpr (std::is_integral_v<From> && std::is_integral_v<To> && !std::is_same_v<From, bool>) {
    return static_cast<To>(std::clamp(static_cast<std::int64_t>(from),
                                      std::int64_t{std::numeric_limits<To>::min()},
                                      std::int64_t{std::numeric_limits<To>::max()}));
  } else {
    return static_cast<To>(from);
  }
}

/// Calls `with` with a null pointer to the dtype's type.
template <class Function>
void with_type(dtype type, const Function& with) {
  switch (type) {
    case dtype::f32:
      return with(static_cast<float*>(nullptr));
    case dtype::bf16:
      return with(static_cast<bfloat16*>(nullptr));
    case dtype::f16:
      return with(static_cast<float16*>(nullptr));
    case dtype::u8:
      return with(static_cast<std::uint8_t*>(nullptr));
    case dtype::i32:
      return with(static_cast<std::int32_t*>(nullptr));
    case dtype::i64:
      return with(static_cast<std::int64_t*>(nullptr));
    case dtype::boolean:
      return with(static_cast<bool*>(nullptr));
  }
}

void cast(const tensor& x, tensor& y) {
  if (is_floating(x.type()) && is_floating(y.type()))
    return map_in_blocks([](const float* from, float* to, std::int64_t size) { std::copy_n(from, size, to); },
                         y, x);
  with_type(x.type(), [&]<class From>(From*) {
    with_type(y.type(), [&]<class To>(To*) {
      std::ranges::transform(x.values<From>(), y.values<To>().begin(), converted<To, From>);
    });
  });
}

}  // namespace

convert_kernels convert() {
  return {.cast = cast, .to_float = [](const tensor& x, float factor, tensor& y) {
            scaled(x.values<std::uint8_t>().data(), factor, y.values<float>().data(), y.num_elements());
          }};
}

}  // namespace troupe::cpu
