#include "job_outcome.hpp"

#include <catch2/catch_test_macros.hpp>
#include <csignal>

using namespace troupe;
using enum job_outcome::ended_by;

namespace {

exit_status code(int number) {
  exit_status status;
  status.code = number;
  return status;
}

exit_status signalled(int number) {
  exit_status status;
  status.signal = number;
  return status;
}

}  // namespace

TEST_CASE("a job without a failure ends with 0 and no last line") {
  job_outcome outcome;
  outcome.process_ended(code(0), itself);
  CHECK(outcome.exit_code() == 0);
  CHECK(outcome.last_line().empty());
}

TEST_CASE("the first failure decides the exit code, or bad input that a process reports after it") {
  job_outcome outcome;
  outcome.fail("the job failed: a file is missing", failure_kind::error);
  CHECK(outcome.exit_code() == 1);
  outcome.process_ended(code(1), itself);
  outcome.process_ended(code(3), itself);
  CHECK(outcome.exit_code() == 1);
  outcome.process_ended(code(bad_input_exit_code), itself);
  CHECK(outcome.exit_code() == bad_input_exit_code);
  CHECK(outcome.last_line() == "the job failed: a file is missing");
}

TEST_CASE("bad input that a process reports decides the exit code, however and when the processes end") {
  for (auto status : {code(1), code(bad_input_exit_code), signalled(SIGTERM), signalled(SIGKILL)})
    for (auto whom : {itself, us}) {
      job_outcome outcome;
      outcome.fail("the job failed: rank 1 ended the job: no such file", failure_kind::bad_input);
      outcome.process_ended(status, whom);
      outcome.process_ended(code(1), itself);
      CHECK(outcome.exit_code() == bad_input_exit_code);
      CHECK(outcome.last_line() == "the job failed: rank 1 ended the job: no such file");
    }
}

TEST_CASE("a process that the launcher ends with a signal does not decide a failed job's exit code") {
  job_outcome outcome;
  outcome.fail("the job failed: rank 2 has another seed", failure_kind::error);
  outcome.process_ended(signalled(SIGTERM), us);
  CHECK(outcome.exit_code() == 1);
  outcome.process_ended(code(4), us);
  CHECK(outcome.exit_code() == 4);
}

TEST_CASE("a stopped job ends with 128 + signal, but one that never began with its processes' code") {
  job_outcome begun, waiting;
  begun.stop(SIGTERM, "at step 7", false);
  begun.process_ended(code(bad_input_exit_code), itself);
  CHECK(begun.exit_code() == 128 + SIGTERM);
  CHECK(begun.last_line() == "stopped by SIGTERM at step 7");
  waiting.stop(SIGTERM, "before it began", true);
  CHECK(waiting.exit_code() == 0);
  CHECK(waiting.last_line().empty());
  waiting.process_ended(code(143), itself);
  CHECK(waiting.exit_code() == 143);
  CHECK(waiting.last_line() == "stopped by SIGTERM before it began");
}

TEST_CASE("a process killed just before the stop of a job that never began does not decide its exit code") {
  for (auto status : {signalled(SIGKILL), signalled(SIGTERM)}) {
    job_outcome outcome;
    outcome.stop(SIGTERM, "before it began", true);
    outcome.process_ended(status, us);
    outcome.process_ended(signalled(SIGTERM), us);
    CHECK(outcome.exit_code() == 128 + SIGTERM);
    CHECK(outcome.last_line() == "stopped by SIGTERM before it began");
  }
}

TEST_CASE("a program's own exit code, or its crash, decides for a job that was stopped before it began") {
  for (auto status : {code(7), signalled(SIGSEGV)}) {
    job_outcome outcome;
    outcome.stop(SIGTERM, "before it began", true);
    outcome.process_ended(status, itself);
    CHECK(outcome.exit_code() == status.shell_code());
    CHECK(outcome.last_line().empty());
  }
}

TEST_CASE("a process that is left behind is a failure, unless another one decided") {
  job_outcome alone, failed;
  alone.abandon();
  CHECK(alone.exit_code() == 1);
  failed.fail("rank 1 failed first: exit code 5", 5);
  failed.abandon();
  CHECK(failed.exit_code() == 5);
}
