// A short form of .ci/soak: memory does not grow with calls and steps.
#include <catch2/catch_test_macros.hpp>

#include "support/counts_memory.hpp"
#include "support/processes/run_process.hpp"

using namespace troupe::testing;

namespace {

/// Bytes a call of 50 steps: 7 a step, where a leak of one number is 8. Between calls the program has heard
/// of all steps; within one, up to 4,096 that its callback has not handled yet come and go.
constexpr auto step_limit = "350";
/// Bytes a call, and a step of four processes: few of them, so that what is under way at a mark counts for up
/// to 40 bytes each. A result that is kept is some 200, a timer 390.
constexpr auto call_limit = "100";
/// It moves by whole pages, which are many bytes a step when steps are few.
constexpr auto resident_limit = "1000";

void check_flat(std::vector<std::string> command, const std::string& limit) {
  if (!counts_memory) SKIP("a sanitizer has an allocator of its own, which keeps what was freed");
  command.insert(command.end(), {"--batch", "4", "--microbatches", "1", "--epochs", "1000000000", "--limit",
                                 limit, "--resident-limit", resident_limit});
  run_options options;
  options.command = std::move(command);
  options.deadline = std::chrono::minutes(9);
  options.without = {"RANK", "WORLD_SIZE"};
  options.environment = {
      {"TROUPE_EVENTS", "64"}};  // rings that are full soon: they take memory until they are
  auto process = run_process(options);
  INFO(process.output);
  INFO(process.errors);
  CHECK(process.signal == 0);
  CHECK(process.exit_code == 0);
}

}  // namespace

TEST_CASE("the memory of a process does not grow with the steps it has made", "[memory]") {
  check_flat({SOAK_WORKER, "--steps", "50", "--calls", "800"}, step_limit);
}

TEST_CASE("the memory of a process does not grow with the calls it has made", "[memory]") {
  check_flat({SOAK_WORKER, "--steps", "1", "--calls", "2000"}, call_limit);
}

// The newest 1,024 steps are kept for those who watch: after half of the calls they are.
TEST_CASE("the memory of four processes does not grow with their steps and calls", "[.soak][memory]") {
  check_flat({TROUPE_PROGRAM, "launch", "--nproc-per-node", "4", "--max-restarts", "0", "--", SOAK_WORKER,
              "--steps", "5000"},
             call_limit);
  check_flat({TROUPE_PROGRAM, "launch", "--nproc-per-node", "4", "--max-restarts", "0", "--", SOAK_WORKER,
              "--steps", "1", "--calls", "3000"},
             call_limit);
}
