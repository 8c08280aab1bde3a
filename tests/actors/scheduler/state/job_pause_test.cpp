#include "troupe/scheduler/state/job_pause.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::actors::scheduler;

namespace {

plan two_stages() { return make_plan({schedule_kind::gpipe, 2, 2, 2}); }

cut at(std::uint64_t step) { return step_cut(two_stages(), step); }

job_pause::activity training(bool is_replay = false) {
  return {3, actors::job::call_kind::train, is_replay, two_stages(), at(10), at(20)};
}

}  // namespace

TEST_CASE("a job that is not paused has no limit") {
  job_pause pause;
  pause.begin(training());
  CHECK(pause.limit() == nullptr);
  CHECK_FALSE(pause.stands());
}

TEST_CASE("a pause limits a call to what is granted, and steps move the limit within the call") {
  job_pause pause;
  pause.begin(training());
  pause.carry_out({1, actors::job::pause_command::pause}, at(14), 99);
  REQUIRE(pause.limit());
  CHECK(*pause.limit() == at(14));
  CHECK(pause.state().request == 1);
  CHECK(pause.state().since_ms == 99);
  pause.carry_out({2, actors::job::pause_command::step, step_unit::step, 3}, at(14), 100);
  CHECK(*pause.limit() == at(17));
  CHECK(pause.state().since_ms == 99);
  pause.carry_out({3, actors::job::pause_command::step, step_unit::step, 300}, at(17), 100);
  CHECK(*pause.limit() == at(20));
  pause.carry_out({4, actors::job::pause_command::resume}, at(17), 100);
  CHECK(pause.limit() == nullptr);
  CHECK(pause.state() == actors::job::pause_state{4, 4});
}

TEST_CASE("steps that were done before are not paused, and cannot be taken one by one") {
  job_pause pause;
  pause.carry_out({1, actors::job::pause_command::pause}, {}, 1);
  CHECK(pause.state().is_reached == 1);
  CHECK_FALSE(pause.can_carry_out({2, actors::job::pause_command::step}));
  pause.begin(training(true));
  CHECK(pause.limit() == nullptr);
  CHECK(pause.state().is_reached == 0);
  CHECK_FALSE(pause.can_carry_out({2, actors::job::pause_command::step}));
  pause.begin(training());
  CHECK(*pause.limit() == at(10));
  CHECK(pause.stands());
  CHECK(pause.can_carry_out({2, actors::job::pause_command::step}));
  pause.end();
  CHECK(pause.limit() == nullptr);
  CHECK_FALSE(pause.can_carry_out({2, actors::job::pause_command::step}));
}

TEST_CASE("only the newest state is learned, and it holds for its call") {
  job_pause pause;
  actors::job::pause_state known{5, 1, 1, 1, 7, 3, actors::job::call_kind::train, at(12).devices};
  pause.learn(known);
  pause.learn({4, 2});
  CHECK(pause.state() == known);
  pause.begin(training());
  CHECK(*pause.limit() == at(12));
  CHECK_FALSE(pause.stands());
  CHECK_FALSE(pause.add(0, {12, 0}));
  CHECK(pause.add(1, {12, 0}));
  CHECK(pause.stands());
  CHECK_FALSE(pause.add(1, {12, 0}));
  // Another call stands at its beginning.
  auto next = training();
  next.call = 4;
  pause.begin(next);
  CHECK(*pause.limit() == at(10));
  CHECK(pause.stands());
}
