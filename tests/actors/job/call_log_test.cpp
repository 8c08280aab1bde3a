#include "troupe/job/call_log.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>
#include <string>

using namespace troupe;

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
