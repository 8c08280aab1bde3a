#include "troupe/fault/action_faults.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::schedule_kind;
using troupe::fault::check_faults;

namespace {

troupe::plan plan_of(schedule_kind kind) { return troupe::make_plan({kind, 4, 4, 4}); }

}  // namespace

TEST_CASE("a fault at an action that the plan does not have is refused with those that it has") {
  auto split = plan_of(schedule_kind::zb_h1), whole = plan_of(schedule_kind::one_f_one_b);
  CHECK_NOTHROW(troupe::fault::check_faults("weight:hang@rank=3,step=2", split, 4));
  CHECK_THROWS_AS(troupe::fault::check_faults("weight@rank=1", whole, 4), troupe::bad_input);
  CHECK_THROWS_WITH(troupe::fault::check_faults("forward@rank=1;weight@rank=1", whole, 4),
                    ContainsSubstring("--fault weight would never strike") && ContainsSubstring("1f1b") &&
                        ContainsSubstring("(forward, backward, apply)"));
  CHECK_THROWS_WITH(troupe::fault::check_faults("reduce@rank=0", whole, 4),
                    ContainsSubstring("--fault reduce"));
  whole.reductions = {{0, 1, 2, 3}};
  for (int stage = 0; stage < 4; ++stage)
    whole.devices[static_cast<std::size_t>(stage)].push_back(
        {stage, troupe::action_kind::reduce_gradient, 0});
  CHECK_NOTHROW(troupe::fault::check_faults("reduce@rank=0", whole, 4));
}

TEST_CASE("faults that can strike are taken, in any rank and at any point outside the plan") {
  auto whole = plan_of(schedule_kind::one_f_one_b);
  CHECK_NOTHROW(troupe::fault::check_faults("", whole, 1));
  for (const auto* point :
       {"joined", "load", "forward", "backward", "apply", "copy_state", "keep_copy", "part_half_written",
        "before_manifest", "read_part", "recovery", "leaving", "gather"})
    CHECK_NOTHROW(troupe::fault::check_faults(std::string(point) + "@rank=3,step=7,incarnation=1", whole, 4));
}

TEST_CASE("a fault in a rank that the job does not have is refused with the ranks that it has") {
  auto whole = plan_of(schedule_kind::one_f_one_b);
  CHECK_THROWS_WITH(troupe::fault::check_faults("forward@rank=4", whole, 4),
                    ContainsSubstring("expected a rank from 0 to 3") && ContainsSubstring("got 4"));
}
