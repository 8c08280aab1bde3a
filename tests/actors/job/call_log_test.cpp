#include "troupe/job/call_log.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <stdexcept>
#include <string>

using namespace troupe;
using namespace troupe::actors::job;

namespace {

/// Call `index`, which trains to step 2 * index, or every third evaluates and stays where it is.
call_result result(std::uint32_t index) {
  call_result made;
  made.index = index;
  made.kind = index % 3 == 2 ? call_kind::evaluate : call_kind::train;
  made.steps_done = 2 * (index - index / 3 - (index % 3 == 2 ? 1 : 0)) + 2;
  made.source = index % 2;
  made.metrics = {0.5 * index, 64, index};
  made.timing = {0.1, 0.2, 0.3, 4};
  made.last_step.assign(100, {1, 2, 3, action_kind::backward, 4, 5});
  return made;
}

call_result without_timeline(std::uint32_t index) {
  auto made = result(index);
  made.last_step.clear();
  return made;
}

constexpr std::uint32_t many = 3 * call_log::max_in_piece + 10;

}  // namespace

TEST_CASE("results are kept in the order of their calls, each once") {
  call_log log;
  CHECK(log.size() == 0);
  CHECK(log.add(result(0)));
  CHECK_FALSE(log.add(result(0)));
  CHECK_FALSE(log.add(result(2)));
  CHECK(log.add(result(1)));
  CHECK(log.size() == 2);
  CHECK(log.newest() == result(1));
}

TEST_CASE("only the newest result keeps its timeline, and older ones keep everything else") {
  call_log log;
  for (std::uint32_t index = 0; index < many; ++index) REQUIRE(log.add(result(index)));
  CHECK(log.newest() == result(many - 1));
  for (std::uint32_t index = 0; index + 1 < many; ++index) REQUIRE(log.at(index) == without_timeline(index));
  CHECK_THROWS_AS(log.at(many), std::out_of_range);
}

TEST_CASE("pieces of the log have a bounded size and no gaps between them") {
  call_log log, copy;
  for (std::uint32_t index = 0; index < many; ++index) log.add(result(index));
  while (copy.size() < log.size()) {
    auto piece = log.piece(copy.size());
    REQUIRE(piece.size() <= call_log::max_in_piece);
    REQUIRE_FALSE(piece.empty());
    copy.add(piece);
  }
  CHECK(copy.at(5) == without_timeline(5));
  CHECK(log.piece(many).empty());
}

TEST_CASE("the call that a step belongs to is found, however old it is") {
  call_log log;
  CHECK_FALSE(log.trained(0));
  for (std::uint32_t index = 0; index < many; ++index) log.add(result(index));
  std::uint32_t call = 0;
  for (std::uint64_t step = 0; step < log.newest().steps_done; ++step) {
    while (result(call).kind != call_kind::train || result(call).steps_done <= step) ++call;
    REQUIRE(log.trained(step)->index == call);
  }
  CHECK_FALSE(log.trained(log.newest().steps_done));
}

TEST_CASE("of a step that is done in two calls the second one is found") {
  call_log log;
  for (std::uint32_t index = 0; index < 6; ++index) {
    call_result half;
    half.index = index;
    half.steps_done = (index + 1) / 2;
    half.kind = index % 2 == 0 ? call_kind::forward_backward : call_kind::optimizer_step;
    log.add(half);
  }
  for (std::uint64_t step = 0; step < 3; ++step) CHECK(log.trained(step)->index == 2 * step + 1);
}

TEST_CASE("if no file can be written, results stay in memory, and one warning says so") {
  std::vector<std::string> warnings;
  call_log log([&](const std::string& problem) { warnings.push_back(problem); }, "/no/such/folder");
  for (std::uint32_t index = 0; index < many; ++index) REQUIRE(log.add(result(index)));
  CHECK(log.at(3) == without_timeline(3));
  CHECK(log.at(many - 1) == result(many - 1));
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("stay in memory") != std::string::npos);
}

TEST_CASE("where nobody repeats calls, a loop of one's own steps leaves nothing behind") {
  call_log log([](const std::string&) {}, {}, kept_results::for_steps);
  std::uint64_t most_on_disk = 0;
  for (std::uint32_t index = 0; index < 200 * call_log::max_in_piece; ++index) {
    auto made = result(index);
    made.replays_from = made.steps_done > 8 ? made.steps_done - 8 : 0;
    REQUIRE(log.add(made));
    most_on_disk = std::max(most_on_disk, log.bytes_on_disk());
  }
  CHECK(most_on_disk == 0);
  CHECK(log.size() == 200 * call_log::max_in_piece);
  auto newest = log.newest();
  // What a recovery may train again is found, and so is the last call.
  for (auto step = newest.replays_from; step < newest.steps_done; ++step)
    CHECK(log.trained(step)->steps_done > step);
  CHECK(log.at(newest.index) == newest);
  CHECK_THROWS_AS(log.at(0), std::out_of_range);
  CHECK_THROWS_AS(log.piece(0), std::out_of_range);
}

TEST_CASE("results of steps that a recovery may do again are kept, and go when it need not") {
  call_log log([](const std::string&) {}, {}, kept_results::for_steps);
  for (std::uint32_t index = 0; index < many; ++index) REQUIRE(log.add(result(index)));
  CHECK(log.bytes_on_disk() > 0);
  CHECK(log.trained(0) == without_timeline(0));
  for (std::uint32_t index = many; index < 2 * many; ++index) {
    auto made = result(index);
    made.replays_from = made.steps_done;
    REQUIRE(log.add(made));
  }
  CHECK(log.bytes_on_disk() == 0);
  CHECK(log.size() == 2 * many);
}

TEST_CASE("a log drops the calls of an earlier job of more steps") {
  call_log log([](const std::string&) {}, {}, kept_results::for_steps);
  for (std::uint32_t index = 0; index < many; ++index) REQUIRE(log.add(result(index)));
  for (std::uint32_t index = 0; index < many; ++index) {
    auto made = result(index);
    made.index = many + index;
    made.replays_from = made.steps_done / 2;
    REQUIRE(log.add(made));
  }
  CHECK_THROWS_AS(log.at(many - 1), std::out_of_range);
  auto last = log.newest();
  CHECK(log.trained(last.replays_from, many)->steps_done > last.replays_from);
}
