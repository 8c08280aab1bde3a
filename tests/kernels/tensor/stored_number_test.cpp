#include "troupe/tensor/stored_number.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;

namespace {

template <class To>
struct room_for {
  using type = To;
};
/// std::vector<bool> has no elements.
template <>
struct room_for<bool> {
  using type = std::uint8_t;
};

template <class To, class From>
auto converted(stored_number type, const std::vector<From>& from, std::int64_t first = 0) {
  std::vector<typename room_for<To>::type> to(from.size());
  convert_numbers(std::as_bytes(std::span(from)), type, std::as_writable_bytes(std::span(to)),
                  dtype_of<To>::value, first);
  return to;
}

}  // namespace

TEST_CASE("unsigned numbers of files keep their values from the sign bit on") {
  using v32 = std::vector<std::int32_t>;
  using v64 = std::vector<std::int64_t>;
  CHECK(converted<std::int32_t>(stored_number::u16, std::vector<std::uint16_t>{0, 32767, 32768, 65535}) ==
        v32{0, 32767, 32768, 65535});
  CHECK(converted<std::int64_t>(stored_number::u32, std::vector<std::uint32_t>{1, 0x80000000, 0xffffffff}) ==
        v64{1, 0x80000000, 0xffffffff});
  CHECK(converted<std::int32_t>(stored_number::i8, std::vector<std::int8_t>{-128, 127}) == v32{-128, 127});
  CHECK(converted<std::int32_t>(stored_number::i16, std::vector<std::int16_t>{-32768, 5}) == v32{-32768, 5});
}

TEST_CASE("floating numbers are rounded to the nearest, NaN and infinity are kept") {
  auto infinity = std::numeric_limits<double>::infinity();
  auto read = converted<float>(stored_number::f64, std::vector<double>{0.1, -2.25, 1e-300, infinity, NAN});
  CHECK(read[0] == 0.1F);
  CHECK(read[1] == -2.25F);
  CHECK(read[2] == 0);
  CHECK(std::isinf(read[3]));
  CHECK(std::isnan(read[4]));
  CHECK(converted<float16>(stored_number::f64, std::vector<double>{1.5})[0] == float16(1.5F));
  CHECK(converted<float>(stored_number::f16, std::vector<float16>{float16(0.5F)})[0] == 0.5F);
  CHECK(converted<float>(stored_number::u8, std::vector<std::uint8_t>{255})[0] == 255);
}

TEST_CASE("values that a dtype cannot hold are refused with their place") {
  auto refused = [](auto convert, const std::string& value, const std::string& element) {
    CHECK_THROWS_WITH(convert(), ContainsSubstring("found " + value + " at element " + element));
    CHECK_THROWS_AS(convert(), bad_input);
  };
  refused([] { converted<std::int32_t>(stored_number::f64, std::vector<double>{1, 2.5}, 10); }, "2.5", "11");
  refused([] { converted<std::int32_t>(stored_number::f64, std::vector<double>{2147483648.0}); },
          "2147483648", "0");
  refused([] { converted<std::int64_t>(stored_number::f32, std::vector<float>{NAN}); }, "nan", "0");
  refused(
      [] {
        converted<std::uint8_t>(stored_number::i64, std::vector<std::int64_t>{255, 256});
      },
      "256", "1");
  refused([] { converted<std::uint8_t>(stored_number::i8, std::vector<std::int8_t>{-1}); }, "-1", "0");
  refused([] { converted<std::int64_t>(stored_number::u64, std::vector<std::uint64_t>{1ULL << 63}); },
          "9223372036854775808", "0");
  refused([] { converted<float>(stored_number::f64, std::vector<double>{1e300}); }, "1e+300", "0");
  refused([] { converted<float16>(stored_number::i32, std::vector<std::int32_t>{70'000}); }, "70000", "0");
  refused([] { converted<bool>(stored_number::u8, std::vector<std::uint8_t>{1, 2}); }, "2", "1");
  refused([] { converted<std::int64_t>(stored_number::f64, std::vector<double>{0x1p63}); },
          "9223372036854775808", "0");
  CHECK(converted<std::int64_t>(stored_number::f64, std::vector<double>{-0x1p63})[0] ==
        std::numeric_limits<std::int64_t>::min());
  CHECK_THROWS_WITH(converted<float>(stored_number::boolean, std::vector<std::uint8_t>{1, 2}),
                    ContainsSubstring("0 or 1"));
  std::vector<float> too_short(1);
  CHECK_THROWS_AS(convert_numbers(std::as_bytes(std::span("12345678", 8)), stored_number::f32,
                                  std::as_writable_bytes(std::span(too_short)), dtype::f32),
                  std::invalid_argument);
}

TEST_CASE("each type of stored numbers has a size, a name and a dtype") {
  CHECK(to_string(stored_number::u16) == "u16");
  CHECK(to_string(stored_number::i8) == "i8");
  CHECK(to_string(stored_number::f64) == "f64");
  CHECK(to_string(stored_number::boolean) == "bool");
  CHECK(size_bytes(stored_number::u64) == 8);
  CHECK(size_bytes(stored_number::bf16) == 2);
  CHECK_FALSE(same_dtype(stored_number::u16));
  CHECK(same_dtype(stored_number::boolean) == dtype::boolean);
  CHECK(usual_dtype(stored_number::u16) == dtype::i32);
  CHECK(usual_dtype(stored_number::u32) == dtype::i64);
  CHECK(usual_dtype(stored_number::f64) == dtype::f32);
  CHECK(usual_dtype(stored_number::u8) == dtype::u8);
}
