#include "troupe/tensor/stored_number.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in memory");

template <class Number>
constexpr bool is_half = std::is_same_v<Number, bfloat16> || std::is_same_v<Number, float16>;

/// What arithmetic is done in.
template <class Number>
auto plain(Number value) {
  if constexpr (is_half<Number>)
    return static_cast<float>(value);
  else
    return value;
}

std::string text_of(bool value) { return value ? "1" : "0"; }
template <class Number>
std::string text_of(Number value) {
  std::array<char, 64> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

template <class Number>
[[noreturn]] void refuse(Number value, dtype as, std::int64_t element) {
  throw bad_input("expected values that " + std::string(to_string(as)) + " can hold, found " +
                  text_of(value) + " at element " + std::to_string(element));
}

/// Whether integer `To` has exactly this value.
template <class To, class Number>
bool holds(Number value) {
  if constexpr (std::is_same_v<Number, bool>) {
    return true;
  } else if constexpr (std::is_same_v<To, bool>) {
    return value == Number{0} || value == Number{1};
  } else if constexpr (std::is_floating_point_v<Number>) {
    // 2^digits, the first value that is too large, has an exact floating value; the largest integer may not.
    auto end = std::ldexp(Number{1}, std::numeric_limits<To>::digits);
    return value >= (std::is_signed_v<To> ? -end : Number{0}) && value < end && value == std::trunc(value);
  } else {
    return std::in_range<To>(value);
  }
}

template <class To, class Number>
To converted(Number value, dtype as, std::int64_t element) {
  if constexpr (std::is_same_v<To, float> || is_half<To>) {
    auto result = To(static_cast<float>(value));
    if (!std::isfinite(static_cast<float>(result)) && std::isfinite(static_cast<double>(value)))
      refuse(value, as, element);
    return result;
  } else {
    if (!holds<To>(value)) refuse(value, as, element);
    return static_cast<To>(value);
  }
}

template <class Number, class To>
void convert(std::span<const std::byte> from, std::span<std::byte> to, dtype as, std::int64_t first) {
  for (std::size_t i = 0; i < from.size() / sizeof(Number); ++i) {
    Number value;
    std::memcpy(&value, from.data() + i * sizeof(Number), sizeof value);
    auto result = converted<To>(plain(value), as, first + static_cast<std::int64_t>(i));
    std::memcpy(to.data() + i * sizeof(To), &result, sizeof result);
  }
}

/// Calls `use` with a value of the C++ type.
template <class Use>
void with_type(stored_number type, Use use) {
  switch (type) {
    case stored_number::boolean:
      return use(bool{});
    case stored_number::u8:
      return use(std::uint8_t{});
    case stored_number::i8:
      return use(std::int8_t{});
    case stored_number::u16:
      return use(std::uint16_t{});
    case stored_number::i16:
      return use(std::int16_t{});
    case stored_number::u32:
      return use(std::uint32_t{});
    case stored_number::i32:
      return use(std::int32_t{});
    case stored_number::u64:
      return use(std::uint64_t{});
    case stored_number::i64:
      return use(std::int64_t{});
    case stored_number::bf16:
      return use(bfloat16{});
    case stored_number::f16:
      return use(float16{});
    case stored_number::f32:
      return use(float{});
    case stored_number::f64:
      return use(double{});
  }
}

void check_booleans(std::span<const std::byte> bytes, std::int64_t first) {
  auto wrong = std::ranges::find_if(bytes, [](std::byte value) { return value > std::byte{1}; });
  if (wrong == bytes.end()) return;
  throw bad_input(
      "expected bytes of 0 or 1 as bool, found others: " + std::to_string(std::to_integer<int>(*wrong)) +
      " at element " + std::to_string(first + (wrong - bytes.begin())));
}

}  // namespace

std::size_t size_bytes(stored_number type) {
  std::size_t size = 0;
  with_type(type, [&](auto value) { size = sizeof value; });
  return size;
}

std::string to_string(stored_number type) {
  if (auto same = same_dtype(type)) return std::string(to_string(*same));
  auto letter = type == stored_number::f64                                ? "f"
                : type == stored_number::i8 || type == stored_number::i16 ? "i"
                                                                          : "u";
  return letter + std::to_string(8 * size_bytes(type));
}

stored_number stored_as(dtype type) {
  switch (type) {
    case dtype::f32:
      return stored_number::f32;
    case dtype::u8:
      return stored_number::u8;
    case dtype::i32:
      return stored_number::i32;
    case dtype::i64:
      return stored_number::i64;
    case dtype::bf16:
      return stored_number::bf16;
    case dtype::f16:
      return stored_number::f16;
    case dtype::boolean:
      break;
  }
  return stored_number::boolean;
}

std::optional<dtype> same_dtype(stored_number type) {
  for (auto known : {dtype::f32, dtype::u8, dtype::i32, dtype::i64, dtype::bf16, dtype::f16, dtype::boolean})
    if (stored_as(known) == type) return known;
  return {};
}

dtype usual_dtype(stored_number type) {
  if (auto same = same_dtype(type)) return *same;
  if (type == stored_number::f64) return dtype::f32;
  return size_bytes(type) < 4 ? dtype::i32 : dtype::i64;
}

void convert_numbers(std::span<const std::byte> from, stored_number type, std::span<std::byte> to, dtype as,
                     std::int64_t first) {
  if (from.size() / size_bytes(type) != to.size() / size_bytes(as) || from.size() % size_bytes(type) != 0)
    throw_invalid("convert_numbers", std::to_string(to.size() / size_bytes(as)) + " numbers",
                  std::to_string(from.size()) + " bytes");
  if (type == stored_number::boolean) check_booleans(from, first);
  if (same_dtype(type) == as) {
    if (!from.empty()) std::memmove(to.data(), from.data(), from.size());
    return;
  }
  with_type(type, [&](auto number) {
    with_type(stored_as(as), [&](auto result) {
      // No dtype is f64, u16, ...: nothing is made for them.
      if constexpr (requires { dtype_of<decltype(result)>::value; })
        convert<decltype(number), decltype(result)>(from, to, as, first);
    });
  });
}

}  // namespace troupe
