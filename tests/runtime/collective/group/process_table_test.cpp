#include "troupe/collective/group/process_table.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <future>

#include "troupe/error/errors.hpp"
#include "troupe/job_error/job_errors.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

using ranks = std::vector<world_rank>;
using lives = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("no process is known before the first view") {
  process_table members(3);
  CHECK(!members.wait_for(ranks{0}, 1ms));
  CHECK(members.missing(ranks{0, 2}) == ranks{0, 2});
  auto waiting = std::async(std::launch::async, [&] { return members.wait_for(ranks{2, 0}, 60s); });
  members.on_view(1, {5, 6, 7});
  CHECK(waiting.get() == lives{7, 5});
}

TEST_CASE("survivors do not wait for a lost rank, others wait for its replacement") {
  process_table members(3);
  members.on_view(1, {0, 0, 0});
  members.on_fence(2, {{1, "killed by SIGKILL"}}, "rank 1 was lost");
  CHECK(members.wait_for(ranks{0, 2}, 1ms) == lives{0, 0});
  CHECK(!members.wait_for(ranks{0, 1}, 1ms));
  CHECK(members.missing(ranks{0, 1, 2}) == ranks{1});
  CHECK(members.loss_of(1, 0) == "killed by SIGKILL");
  CHECK(!members.loss_of(0, 0));
  auto waiting = std::async(std::launch::async, [&] { return members.wait_for(ranks{0, 1, 2}, 60s); });
  members.on_fence(3, {{1, "told again before the view"}}, "rank 1 was lost");
  members.on_view(3, {0, 1, 0});
  CHECK(waiting.get() == lives{0, 1, 0});
  CHECK(!members.loss_of(1, 1));
  CHECK(members.loss_of(1, 0));
}

TEST_CASE(
    "a process that a group reported as lost is alive again when a fence does not name it, or none comes") {
  process_table members(3);
  members.on_view(1, {0, 4, 0});
  members.suspect(1, 4);
  members.suspect(2, 0);
  members.on_fence(2, {{2, "killed by SIGKILL"}}, "rank 2 was lost");
  CHECK(members.wait_for(ranks{0, 1}, 1ms) == lives{0, 4});
  CHECK(!members.loss_of(1, 4));
  CHECK(members.loss_of(2, 0) == "killed by SIGKILL");
  members.suspect(1, 4);
  auto waiting = std::async(std::launch::async, [&] { return members.wait_for(ranks{1}, 60s); });
  members.clear_suspicions();
  CHECK(waiting.get() == lives{4});
  CHECK(members.missing(ranks{0, 1, 2}) == ranks{2});  // the fence's word stays
}

TEST_CASE("a process that a group reported as lost is not waited for again") {
  process_table members(2);
  members.on_view(1, {0, 0});
  members.suspect(1, 0);
  CHECK(members.loss_of(1, 0) == "a group lost it");
  members.on_view(1, {0, 0});
  CHECK(!members.wait_for(ranks{1}, 1ms));
  members.on_view(2, {0, 1});
  CHECK(members.wait_for(ranks{1}, 1ms) == lives{1});
  members.suspect(1, 0);  // old news
  CHECK(members.wait_for(ranks{1}, 1ms) == lives{1});
}

TEST_CASE("the end of the job ends all waits, current and later ones") {
  process_table members(2);
  members.on_view(1, {0, 0});
  members.on_fence(2, {{1, "killed"}}, "rank 1 was killed");
  auto waiting = std::async(std::launch::async, [&] { return members.wait_for(ranks{1}, 60s); });
  members.on_end("rank 1 was lost for good");
  CHECK_THROWS_MATCHES(waiting.get(), job_failed, MessageMatches(ContainsSubstring("lost for good")));
  CHECK_THROWS_AS(members.wait_for(ranks{0}, 1ms), job_failed);
  CHECK_THROWS_AS(members.loss_of(0, 0), job_failed);
}

TEST_CASE("a job that a signal stopped is told apart from one that failed") {
  process_table members(2);
  members.on_view(1, {0, 0});
  members.on_end("stopped at step 3", 15);
  CHECK_THROWS_MATCHES(members.wait_for(ranks{0}, 1ms), job_stopped,
                       MessageMatches(ContainsSubstring("at step 3")));
}

TEST_CASE("a listener is told of fences and of the end until it is removed") {
  process_table members(2);
  members.on_view(1, {0, 0});
  std::vector<std::string> heard;
  members.set_listener([&](const groups_end& why) {
    heard.push_back(std::to_string(why.lost.size()) + ' ' + std::to_string(why.generation) +
                    (why.is_job_end ? " job: " : " fence: ") + why.cause);
  });
  members.on_fence(2, {{1, "killed"}}, "rank 1 was killed");
  members.on_end("over");
  members.set_listener({});
  members.on_fence(3, {{0, "killed"}}, "unheard");
  CHECK(heard == std::vector<std::string>{"1 2 fence: rank 1 was killed", "0 0 job: over"});
}

TEST_CASE("a generation ends at the fence that raises it, and who waits for its end goes on") {
  process_table members(2);
  members.on_view(1, {0, 0});
  CHECK(members.generation() == process_table::first_generation);
  CHECK(!members.end_of(1));
  members.wait_for_end_of(1, 1ms);
  auto waiting = std::async(std::launch::async, [&] { members.wait_for_end_of(1, 60s); });
  members.on_fence(2, {}, "a stage failed");
  waiting.get();
  CHECK(members.generation() == 2);
  CHECK(members.end_of(1)->cause == "a stage failed");
  CHECK(!members.end_of(2));
}

TEST_CASE("each generation has ended by the fence after it, whatever came later") {
  process_table members(3);
  members.on_view(1, {0, 0, 0});
  members.on_fence(2, {{1, "killed"}}, "rank 1 was killed");
  members.on_fence(4, {{2, "exit code 3"}}, "rank 2 has failed");
  CHECK((members.end_of(1)->cause == "rank 1 was killed" && members.end_of(1)->lost == ranks{1}));
  for (std::uint64_t generation : {2, 3}) CHECK(members.end_of(generation)->lost == ranks{2});
  CHECK(!members.end_of(4));
}

TEST_CASE("a generation whose fence has not come, but the view of the next one, has ended with that") {
  process_table members(2);
  members.on_view(3, {0, 1});
  CHECK((members.end_of(1)->cause == "generation 3 has begun" && members.end_of(1)->lost.empty()));
}
