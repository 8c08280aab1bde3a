#include "troupe/config/environment/events_environment.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/error/errors.hpp"

using namespace troupe;
using namespace troupe::config;
using Catch::Matchers::ContainsSubstring;

namespace {

events_environment read_with(const std::string& events, const std::string& file = "") {
  return read_events_environment([&](const std::string& name) -> std::optional<std::string> {
    if (name == "TROUPE_EVENTS") return events;
    return name == "TROUPE_EVENTS_FD" ? file : "";
  });
}

}  // namespace

TEST_CASE("events are recorded unless they are switched off") {
  CHECK(read_with("").events_per_thread == 16384);
  CHECK(read_with("64").events_per_thread == 64);
  CHECK(read_with("1048576").events_per_thread == 1048576);
  CHECK(read_with("0").events_per_thread == 0);
  CHECK(read_with("").file == -1);
  CHECK(read_with("", "7").file == 7);
}

TEST_CASE("a number of events that cannot be is refused with its range") {
  for (auto text : {"1", "63", "1048577", "-1", "many", "64k", "99999999999"}) {
    CHECK_THROWS_AS(read_with(text), bad_input);
    CHECK_THROWS_WITH(read_with(text), ContainsSubstring("TROUPE_EVENTS") && ContainsSubstring("1048576") &&
                                           ContainsSubstring(text));
  }
}
