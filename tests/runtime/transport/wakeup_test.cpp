#include "troupe/transport/wakeup.hpp"

#include <catch2/catch_test_macros.hpp>

// Without a limit this case ends by the test's timeout.
TEST_CASE("a sleeper that nobody wakes looks again") {
  troupe::wakeup sleeper;
  sleeper.announce_sleep();
  sleeper.rest({-1, -1}, true, {});
  SUCCEED("it came back");
}
