#include "troupe/config/duration_text.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/error/errors.hpp"

using namespace std::chrono_literals;
using troupe::config::duration_from;

TEST_CASE("durations are read with and without a unit") {
  CHECK(troupe::config::duration_from("5s") == 5s);
  CHECK(troupe::config::duration_from("200ms") == 200ms);
  CHECK(troupe::config::duration_from("5") == 5s);
  CHECK(troupe::config::duration_from("0.25") == 250ms);
  CHECK(troupe::config::duration_from("2m") == 2min);
  CHECK(troupe::config::duration_from("2min") == 2min);
  CHECK(troupe::config::duration_from("1h") == 1h);
  CHECK(troupe::config::duration_from("0") == 0ms);
}

TEST_CASE("malformed durations are refused with the known units") {
  for (auto text : {"", "s", "5 s", "5x", "-1s", "nan", "inf", "1e300", "five"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(troupe::config::duration_from(text), troupe::bad_input);
  }
  CHECK_THROWS_WITH(
      troupe::config::duration_from("5 weeks"),
      Catch::Matchers::ContainsSubstring("5s, 200ms, 2m") && Catch::Matchers::ContainsSubstring("'5 weeks'"));
}

TEST_CASE("a duration of more than a year is refused with the limit") {
  CHECK_THROWS_WITH(troupe::config::duration_from("99999999999m"),
                    Catch::Matchers::ContainsSubstring("366 days (8784h) at most, got '99999999999m'"));
  CHECK(troupe::config::duration_from("8784h") == 8784h);
}

TEST_CASE("a printed duration reads back") {
  for (auto duration : {0ms, 1ms, 1500ms, 60'000ms})
    CHECK(troupe::config::duration_from(troupe::config::to_text(duration)) == duration);
  CHECK(troupe::config::to_text(5s) == "5s");
  CHECK(troupe::config::to_text(200ms) == "200ms");
}
