#include "troupe/collective/diagnostics/failure_diagnosis.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/temp_folder.hpp"
#include "troupe/collective/diagnostics/failure_report.hpp"
#include "troupe/collective/rendezvous/store.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace troupe::testing;

namespace {

const group_description three{"g", {4, 7, 9}, 0};

collective_error some_error(std::vector<world_rank> ranks, const std::string& cause) {
  return {collective_failure::lost_member, "g", 6, std::move(ranks), cause};
}

failure_report as_read(const failure_report& words) {
  auto text = encode(words);
  return decode_failure_report(std::as_bytes(std::span(text)));
}

}  // namespace

TEST_CASE("failure reports are decoded as they were encoded") {
  failure_report words{.sequence = 6, .activity = "has finished call 6, barrier", .waits_for = {0, 2}};
  auto plain = as_read(words);
  CHECK(plain.sequence == 6);
  CHECK(plain.activity == words.activity);
  CHECK(plain.waits_for == words.waits_for);
  CHECK_FALSE(plain.failure.has_value());
  CHECK(plain.cause.empty());
  auto last = as_read(with_failure(words, some_error({7, 9}, "rank 7 ended\nits calls:\n")));
  CHECK(last.failure == collective_failure::lost_member);
  CHECK(last.failed_ranks == std::vector<world_rank>{7, 9});
  CHECK(last.cause == "rank 7 ended\nits calls:\n");
  CHECK(as_read(with_failure(words, some_error({}, std::string(9000, 'x')))).cause.size() == 4000);
  CHECK(decode_failure_report(std::as_bytes(std::span("no words"))).sequence == 0);
}

TEST_CASE("the member that others wait for and that waits for no other is the one behind") {
  failure_report own{.waits_for = {1}}, waiting{.activity = "is in call 3, barrier", .waits_for = {2}};
  auto states = failure_diagnosis(three).member_states({own, waiting, {}});
  REQUIRE(states.size() == 2);
  CHECK_FALSE(states[0].is_behind);
  CHECK(states[0].activity == "is in call 3, barrier");
  CHECK(states[1].is_behind);
  CHECK(states[1].activity == "has sent no report");
  auto others = failure_diagnosis(three).member_states({own, failure_report(), {}});
  CHECK(others[0].is_behind);
  CHECK(others[0].activity == "has begun no collective yet");
  CHECK_FALSE(others[1].is_behind);  // done with its part, and computes
}

TEST_CASE(
    "the error of all members names who aborted the group first, and the ranks that it blames or its own") {
  failure_diagnosis found(three);
  failure_report silent_about_whom{
      .sequence = 5, .failure = collective_failure::cancelled, .cause = "enough"};
  CHECK(found.aborted_by(1, silent_about_whom).ranks() == std::vector<world_rank>{7});
  auto blaming = with_failure({.sequence = 6}, some_error({9}, "rank 9 ended"));
  call_signature call;
  auto error = found.library_failure({call, 6}, "connection reset", {failure_report(), blaming, {}});
  CHECK(error.kind() == collective_failure::lost_member);
  CHECK(error.ranks() == std::vector<world_rank>{9});
  CHECK(std::string(error.what()) == "group g was aborted by rank 7: rank 9 ended");
}

TEST_CASE("if no member knows the cause, members without a report count as lost") {
  call_signature call;
  auto error = failure_diagnosis(three).library_failure({call, 6}, "connection reset",
                                                        {failure_report(), failure_report(), {}});
  CHECK(error.kind() == collective_failure::lost_member);
  CHECK(error.ranks() == std::vector<world_rank>{9});
  auto late = failure_diagnosis(three).library_failure(
      {call, 6}, "connection reset",
      {failure_report(), failure_report{.failure = collective_failure::timed_out}, {}});
  CHECK(late.kind() == collective_failure::timed_out);
  auto known = failure_diagnosis(three).library_failure(
      {call, 6}, "no memory", {failure_report(), failure_report(), failure_report()});
  CHECK(known.kind() == collective_failure::transport);
}

TEST_CASE(
    "a store keeps the newest failure report of each member of one group, and shows which members have "
    "none") {
  temp_folder folder;
  folder_store place(folder.path());
  auto grace = std::chrono::milliseconds(20);
  group_description third_member{"g", {4, 7, 9}, 2}, others{"g", {4, 2}, 0};
  failure_report_store first(three, place, grace), third(third_member, place, grace),
      elsewhere(others, place, grace);
  first.put({.sequence = 1, .activity = "first"});
  first.put({.sequence = 7, .activity = "is in call 7, barrier"});
  third.put(with_failure({.sequence = 6}, some_error({7}, "rank 7 ended")));
  for (auto* reader : {&first, &third}) {
    auto words = reader->read_all();
    REQUIRE(words.size() == 3);
    CHECK(words[0]->activity == "is in call 7, barrier");
    CHECK_FALSE(words[1].has_value());
    CHECK(words[2]->cause == "rank 7 ended");
  }
  CHECK_FALSE(elsewhere.read_all()[0].has_value());
}
