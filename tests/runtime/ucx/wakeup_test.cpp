#include "troupe/ucx/wakeup.hpp"

#include <catch2/catch_test_macros.hpp>

// Without a limit this case ends by the test's timeout.
TEST_CASE("a sleeping thread checks again after the limit without a wake-up") {
  troupe::ucx::wakeup sleeper;
  sleeper.announce_sleep();
  sleeper.rest({-1, -1}, true, {});
  SUCCEED("it came back");
}
