#include "troupe/collective/post_mortem.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/temp_folder.hpp"
#include "troupe/collective/folder_store.hpp"
#include "troupe/collective/library/left_words.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

const group_description three{"g", {4, 7, 9}, 0};

collective_error some_error(std::vector<int> ranks, const std::string& cause) {
  return {collective_failure::lost_member, "g", 6, std::move(ranks), cause};
}

last_words as_read(const last_words& words) {
  auto text = encoded(words);
  return decoded_words(std::as_bytes(std::span(text)));
}

}  // namespace

TEST_CASE("last words are read as they were said") {
  last_words words{.sequence = 6, .doing = "has finished call 6, barrier", .awaited = {0, 2}};
  auto plain = as_read(words);
  CHECK(plain.sequence == 6);
  CHECK(plain.doing == words.doing);
  CHECK(plain.awaited == words.awaited);
  CHECK_FALSE(plain.gave_up.has_value());
  CHECK(plain.cause.empty());
  auto last = as_read(giving_up(words, some_error({7, 9}, "rank 7 ended\nits calls:\n")));
  CHECK(last.gave_up == collective_failure::lost_member);
  CHECK(last.ranks == std::vector{7, 9});
  CHECK(last.cause == "rank 7 ended\nits calls:\n");
  CHECK(as_read(giving_up(words, some_error({}, std::string(9000, 'x')))).cause.size() == 4000);
  CHECK(decoded_words(std::as_bytes(std::span("no words"))).sequence == 0);
}

TEST_CASE("behind is who is awaited by somebody and waits for nobody") {
  last_words own{.awaited = {1}}, waiting{.doing = "is in call 3, barrier", .awaited = {2}};
  auto states = post_mortem(three).examine({own, waiting, {}});
  REQUIRE(states.size() == 2);
  CHECK_FALSE(states[0].is_behind);
  CHECK(states[0].doing == "is in call 3, barrier");
  CHECK(states[1].is_behind);
  CHECK(states[1].doing == "says nothing");
  auto others = post_mortem(three).examine({own, last_words(), {}});
  CHECK(others[0].is_behind);
  CHECK(others[0].doing == "has begun no collective yet");
  CHECK_FALSE(others[1].is_behind);  // done with its part, and computes
}

TEST_CASE("who gave up first is told by all, with the ranks that it blames or its own") {
  post_mortem found(three);
  last_words silent_about_whom{.sequence = 5, .gave_up = collective_failure::cancelled, .cause = "enough"};
  CHECK(found.given_up(1, silent_about_whom).ranks() == std::vector{7});
  auto blaming = giving_up({.sequence = 6}, some_error({9}, "rank 9 ended"));
  call_signature call;
  auto error = found.refused({call, 6}, "connection reset", {last_words(), blaming, {}});
  CHECK(error.kind() == collective_failure::lost_member);
  CHECK(error.ranks() == std::vector{9});
  CHECK(std::string(error.what()) == "group g: rank 7 gave up: rank 9 ended");
}

TEST_CASE("where nobody knows the cause, those who say nothing are lost") {
  call_signature call;
  auto error = post_mortem(three).refused({call, 6}, "connection reset", {last_words(), last_words(), {}});
  CHECK(error.kind() == collective_failure::lost_member);
  CHECK(error.ranks() == std::vector{9});
  auto late =
      post_mortem(three).refused({call, 6}, "connection reset",
                                 {last_words(), last_words{.gave_up = collective_failure::timed_out}, {}});
  CHECK(late.kind() == collective_failure::timed_out);
  auto known = post_mortem(three).refused({call, 6}, "no memory", {last_words(), last_words(), last_words()});
  CHECK(known.kind() == collective_failure::transport);
}

TEST_CASE("members leave their words in a store for one group, the newest ones, and see who left none") {
  temp_folder folder;
  folder_store place(folder.path());
  auto grace = std::chrono::milliseconds(20);
  group_description third_member{"g", {4, 7, 9}, 2}, others{"g", {4, 2}, 0};
  left_words first(three, place, grace), third(third_member, place, grace), elsewhere(others, place, grace);
  first.leave({.sequence = 1, .doing = "first"});
  first.leave({.sequence = 7, .doing = "is in call 7, barrier"});
  third.leave(giving_up({.sequence = 6}, some_error({7}, "rank 7 ended")));
  for (auto* reader : {&first, &third}) {
    auto words = reader->read();
    REQUIRE(words.size() == 3);
    CHECK(words[0]->doing == "is in call 7, barrier");
    CHECK_FALSE(words[1].has_value());
    CHECK(words[2]->cause == "rank 7 ended");
  }
  CHECK_FALSE(elsewhere.read()[0].has_value());
}
