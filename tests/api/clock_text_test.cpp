#include "troupe/detail/clock_text.hpp"

#include <catch2/catch_test_macros.hpp>
#include <limits>

using namespace troupe;

TEST_CASE("hours and days of the time that is left are not counted as minutes") {
  CHECK(detail::clock_text(0) == "0:00");
  CHECK(detail::clock_text(59.9) == "0:59");
  CHECK(detail::clock_text(125) == "2:05");
  CHECK(detail::clock_text(3599) == "59:59");
  CHECK(detail::clock_text(3600) == "1:00:00");
  CHECK(detail::clock_text(86399) == "23:59:59");
  CHECK(detail::clock_text(3 * 86400 + 3725) == "3 d 1:02:05");
  CHECK(detail::clock_text(std::numeric_limits<double>::infinity()) == "-");
  CHECK(detail::clock_text(std::numeric_limits<double>::quiet_NaN()) == "-");
  CHECK(detail::clock_text(-1) == "-");
}
