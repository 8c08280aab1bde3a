#include "troupe/usage/number_text.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::usage;

TEST_CASE("a number of bytes has units of 1024") {
  CHECK(bytes_from("0") == 0);
  CHECK(bytes_from("4096") == 4096);
  CHECK(bytes_from("4096b") == 4096);
  for (auto text : {"2M", "2m", "2MB", "2MiB", "2 mib", "2Mi", "2048K"}) CHECK(bytes_from(text) == 2 << 20);
  CHECK(bytes_from("8T") == most_memory_bytes);
  CHECK(bytes_from("1P", ~std::uint64_t{0}) == std::uint64_t{1} << 50);
}

TEST_CASE("what is no number of bytes is refused with the range") {
  for (auto text : {"", "-1", "+1", "1.5M", "99999999999999999999", "9T", "8193G", "18446744073709551615",
                    "M", "4M,", "4M 4M"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(bytes_from(text), bad_input);
  }
  CHECK_THROWS_WITH(bytes_from("1.5M"),
                    ContainsSubstring("expected a whole number of bytes from 0 to 8T, such "
                                      "as 64M or 2G, got '1.5M'"));
  CHECK_THROWS_WITH(bytes_from("-1", 1000), ContainsSubstring("from 0 to 1000, such as"));
  CHECK_THROWS_WITH(bytes_from("1Q"), ContainsSubstring("got the unit 'Q'"));
}

TEST_CASE("a number is finite and stands alone") {
  CHECK(number_from("-0.5") == -0.5);
  for (auto text : {"", "1,", "nan", "inf", "1e999", "fast"}) CHECK_THROWS_AS(number_from(text), bad_input);
}

TEST_CASE("bytes are written in the largest unit that leaves a number from 1 on") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(2048) == "2 KiB");
  CHECK(bytes_text(1.5 * (1 << 30)) == "1.5 GiB");
  CHECK(bytes_text(33'554'432) == "32 MiB");
}

TEST_CASE("underscores between digits are left out, others stay") {
  CHECK(without_separators("1_000_000") == "1000000");
  CHECK(without_separators("_1__2_") == "_1__2_");
  CHECK(without_separators("a_b") == "a_b");
}
