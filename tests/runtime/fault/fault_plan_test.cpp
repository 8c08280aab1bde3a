#include "troupe/fault/fault_plan.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>

#include "troupe/error/errors.hpp"

namespace {

/// The signal that ended a child which calls `plan.at(point, step)`, or 0.
int signal_of(const troupe::fault::fault_plan& plan, troupe::fault::fault_point point,
              std::optional<std::uint64_t> step) {
  auto child = ::fork();
  if (child == 0) {
    plan.at(point, step);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE("a planned fault kills only at its point, step, rank and incarnation") {
  using enum troupe::fault::fault_point;
  troupe::fault::fault_plan plan("forward@rank=2,step=7;recovery@rank=2", 2, 0);
  CHECK(signal_of(plan, forward, 7) == SIGKILL);
  CHECK(signal_of(plan, recovery, 3) == SIGKILL);
  CHECK(signal_of(plan, forward, 6) == 0);
  CHECK(signal_of(plan, backward, 7) == 0);
  CHECK(signal_of(troupe::fault::fault_plan("forward@rank=2", 1, 0), forward, 7) == 0);
  CHECK(signal_of(troupe::fault::fault_plan("forward@rank=2", 2, 1), forward, 7) == 0);
  CHECK(signal_of(troupe::fault::fault_plan("forward@rank=2,incarnation=1", 2, 1), forward, 7) == SIGKILL);
}

TEST_CASE("a planned fault can fail with an exception instead, once") {
  troupe::fault::fault_plan plan("apply:fail@rank=0,step=3", 0, 0);
  plan.at(troupe::fault::fault_point::apply, 2);
  CHECK_THROWS_AS(plan.at(troupe::fault::fault_point::apply, 3), std::runtime_error);
  CHECK_NOTHROW(plan.at(troupe::fault::fault_point::apply, 3));
}

TEST_CASE("a planned fault can stop the process instead") {
  auto child = ::fork();
  if (child == 0) {
    troupe::fault::fault_plan("forward:stop@rank=0", 0, 0).at(troupe::fault::fault_point::forward, 1);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  CHECK((WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP));
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
}

TEST_CASE("a fault plan that cannot be read names the text and the points") {
  using Catch::Matchers::ContainsSubstring;
  CHECK_THROWS_WITH(troupe::fault::fault_plan("nowhere@rank=1", 1, 0),
                    ContainsSubstring("nowhere") && ContainsSubstring("before_manifest"));
  CHECK_THROWS_AS(troupe::fault::fault_plan("forward@step=1", 1, 0), troupe::bad_input);
  CHECK_THROWS_AS(troupe::fault::fault_plan("forward:explode@rank=1", 1, 0), troupe::bad_input);
  CHECK_THROWS_AS(troupe::fault::fault_plan("forward@rank=x", 1, 0), troupe::bad_input);
  CHECK_THROWS_AS(troupe::fault::fault_plan("forward@rank=1,colour=red", 1, 0), troupe::bad_input);
}

TEST_CASE("a plan tells which of this process's faults were not injected") {
  constexpr auto text =
      "apply:fail@rank=0,step=3;forward@rank=0,step=99;joined:hang@rank=0,incarnation=1;load@rank=1";
  troupe::fault::fault_plan plan(text, 0, 0);
  CHECK(plan.not_fired().size() == 2);
  CHECK_THROWS(plan.at(troupe::fault::fault_point::apply, 3));
  auto left = plan.not_fired();
  REQUIRE(left.size() == 1);
  CHECK(to_string(left[0]) == "forward:kill@rank=0,step=99");
  CHECK(to_string(troupe::fault::fault_plan(text, 0, 1).not_fired().at(0)) ==
        "joined:hang@rank=0,incarnation=1");
}
