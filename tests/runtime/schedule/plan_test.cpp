#include "troupe/schedule/plan.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;

TEST_CASE("a schedule has the name users type") {
  using enum troupe::schedule_kind;
  for (auto kind : {gpipe, one_f_one_b, forward_only, interleaved_1f1b, zb_h1, zb_h2, zb_v, dualpipe_v,
                    pipedream_2bw, looped_bfs})
    CHECK(troupe::schedule_kind_from(to_string(kind)) == kind);
  CHECK(to_string(custom) == "custom");
  CHECK(to_string(one_f_one_b) == "1f1b");
  CHECK(troupe::schedule_kind_from("one_f_one_b") == one_f_one_b);
}

TEST_CASE("the numbers of schedules, which snapshots and messages may hold, stay what they were") {
  using enum troupe::schedule_kind;
  int number = 0;
  for (auto kind : {gpipe, one_f_one_b, forward_only, interleaved_1f1b, zb_h1, zb_h2, zb_v, dualpipe_v,
                    custom, pipedream_2bw, looped_bfs})
    CHECK(static_cast<int>(kind) == number++);
}

TEST_CASE("an unknown schedule is refused with the known ones") {
  CHECK_THROWS_AS(troupe::schedule_kind_from("interleaved"), troupe::bad_input);
  CHECK_THROWS_WITH(troupe::schedule_kind_from("interleaved"),
                    ContainsSubstring("'interleaved'") &&
                        ContainsSubstring("gpipe, 1f1b, forward_only, interleaved_1f1b, zb_h1, zb_h2, zb_v, "
                                          "dualpipe_v, pipedream_2bw, looped_bfs"));
  CHECK_THROWS_WITH(troupe::schedule_kind_from("custom"), ContainsSubstring("unknown schedule 'custom'"));
}

TEST_CASE("an action is written as stage, kind and microbatch") {
  using enum troupe::action_kind;
  CHECK(to_string(troupe::action{2, forward, 0}) == "2F0");
  CHECK(to_string(troupe::action{1, backward, 3}) == "1B3");
  CHECK(to_string(troupe::action{12, input_gradient, 34}) == "12I34");
  CHECK(to_string(troupe::action{0, weight_gradient, 3}) == "0W3");
  CHECK(to_string(troupe::action{1, reduce_gradient, 2}) == "1R2");
  for (auto text : {"2F0", "1B3", "12I34", "0W3", "1R2"}) CHECK(to_string(troupe::action_from(text)) == text);
}

TEST_CASE("the optimizer's step of a stage has the number of a later one of several") {
  CHECK(to_string(troupe::action{2, troupe::action_kind::apply, 0}) == "2A");
  CHECK(troupe::action_from("2A") == troupe::action{2, troupe::action_kind::apply, 0});
  CHECK(to_string(troupe::action{2, troupe::action_kind::apply, 3}) == "2A3");
  CHECK(troupe::action_from("2A3") == troupe::action{2, troupe::action_kind::apply, 3});
}

TEST_CASE("malformed text of an action is refused with the notation") {
  for (auto text : {"", "F", "2F", "F0", "2f0", "2X0", "-1F0", "1F-2", "2F0 ", " 2F0", "2F0x",
                    "99999999999F0", "1F1F1", "A", "2A0", "2A-1", "2A3x", "2a", "2A "}) {
    CAPTURE(text);
    CHECK_THROWS_AS(troupe::action_from(text), troupe::bad_input);
    CHECK_THROWS_WITH(troupe::action_from(text),
                      ContainsSubstring("F, B, I, W, R, A, G, U or S") && ContainsSubstring("2F0"));
  }
}
