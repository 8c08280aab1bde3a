#include "troupe/config/stop_signals.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>

#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::config;

TEST_CASE("signals that announce an end are named as in Slurm, with SIG or without") {
  CHECK(stop_signals_from("").empty());
  CHECK(stop_signals_from("USR1") == stop_signals{SIGUSR1});
  CHECK(stop_signals_from("SIGUSR2,XCPU") == stop_signals{SIGUSR2, SIGXCPU});
  CHECK(to_text(stop_signals_from("XCPU,USR1")) == "USR1,XCPU");
  CHECK(stop_signals_from(to_text({SIGUSR1, SIGUSR2})) == stop_signals{SIGUSR1, SIGUSR2});
}

TEST_CASE("other signals are refused with the option and what is expected") {
  for (const char* wrong : {"TERM", "usr1", "USR1,,USR2", "10", "USR1 USR2"}) {
    CAPTURE(wrong);
    CHECK_THROWS_WITH(stop_signals_from(wrong),
                      ContainsSubstring("--stop-signals: expected USR1, USR2 or XCPU"));
    CHECK_THROWS_AS(stop_signals_from(wrong), bad_input);
  }
}

TEST_CASE("only signals that announce an end may come twice") {
  for (int number : {SIGUSR1, SIGUSR2, SIGXCPU}) CHECK(is_early_warning(number));
  for (int number : {SIGTERM, SIGINT, SIGHUP}) CHECK_FALSE(is_early_warning(number));
}

TEST_CASE("a stop signal kills a job that stops when it comes a second after the first, and is no warning") {
  using namespace std::chrono_literals;
  CHECK_FALSE(is_repeated_stop(SIGTERM, 0ms));
  CHECK_FALSE(is_repeated_stop(SIGINT, 999ms));
  CHECK(is_repeated_stop(SIGINT, 1s));
  CHECK(is_repeated_stop(SIGHUP, 10s));
  CHECK_FALSE(is_repeated_stop(SIGUSR1, 10s));
}
