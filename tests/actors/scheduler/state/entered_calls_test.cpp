#include "troupe/scheduler/state/entered_calls.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

using namespace troupe;
using namespace troupe::actors::scheduler;

namespace {

actors::job::call_request train(std::uint32_t index, std::uint64_t target) {
  return {index, actors::job::call_kind::train, 0, target, 0, 0};
}

}  // namespace

TEST_CASE("a call is complete when every process is in it, not in an earlier or later one") {
  entered_calls calls;
  CHECK_FALSE(calls.is_complete(2, 0));
  calls.enter(1, train(0, 5));
  CHECK_FALSE(calls.is_complete(2, 0));
  calls.enter(0, train(1, 9));
  CHECK_FALSE(calls.is_complete(2, 0));
  CHECK_FALSE(calls.is_complete(2, 1));
  calls.enter(1, train(1, 9));
  CHECK(calls.is_complete(2, 1));
  calls.clear();
  CHECK_FALSE(calls.is_complete(2, 1));
}

TEST_CASE("processes with equal requests agree, and of differing ones each rank is named with its value") {
  entered_calls calls;
  calls.enter(1, train(0, 5));
  calls.enter(0, train(0, 5));
  CHECK_FALSE(calls.disagreement());
  CHECK(calls.request() == train(0, 5));
  calls.enter(1, train(0, 6));
  auto told = calls.disagreement().value_or("");
  CHECK(told.find("steps at its end: rank 1 has 6, rank 0 has 5") != std::string::npos);
}

TEST_CASE("where one process finds fault with its call, the difference says so first") {
  entered_calls calls;
  auto bad = train(0, 4);
  bad.problem = "expected a multiple of 4 samples, got 15";
  calls.enter(0, train(0, 5));
  calls.enter(1, bad);
  auto told = calls.disagreement().value_or("");
  CHECK(told.starts_with(
      "the processes of the job differ: rank 1: expected a multiple of 4 samples, got 15; steps at its end"));
}

TEST_CASE("descriptions of data are compared among the processes that have read it") {
  auto reading = [](const std::string& content) {
    auto request = train(0, 5);
    request.content = content;
    return request;
  };
  entered_calls calls;
  calls.enter(0, reading("u8 1234"));
  calls.enter(1, reading(""));
  calls.enter(2, reading("u8 1234"));
  CHECK_FALSE(calls.disagreement());
  calls.enter(2, reading("u8 5678"));
  CHECK(calls.disagreement().value_or("").find("samples: rank 2 has u8 5678") != std::string::npos);
}

TEST_CASE("jobs are compared before calls, in later calls too") {
  entered_calls calls;
  std::vector<agreement::job_description> jobs(3);
  for (auto& job : jobs) job.add("seed", &job == &jobs[1] ? "7" : "1");
  auto all_enter = [&](std::uint32_t index) {
    for (int rank = 0; rank < 3; ++rank)
      calls.enter(rank, train(index, 5), jobs[static_cast<std::size_t>(rank)].hash());
  };
  for (int rank = 0; rank < 3; ++rank) calls.learn(rank, jobs[static_cast<std::size_t>(rank)]);
  for (std::uint32_t index : {0u, 1u}) {
    all_enter(index);
    auto told = calls.disagreement().value_or("");
    CHECK(told.find("seed: rank 1 has 7, ranks 0 and 2 have 1") != std::string::npos);
    calls.clear();
  }
  jobs[1] = jobs[0];
  calls.learn(1, jobs[1]);
  all_enter(2);
  CHECK_FALSE(calls.disagreement());
}

TEST_CASE("a process without a job is not compared with the jobs of others") {
  entered_calls calls;
  agreement::job_description job;
  job.add("seed", "1");
  calls.learn(0, job);
  calls.enter(0, train(0, 5), job.hash());
  calls.enter(1, train(0, 5));
  CHECK_FALSE(calls.disagreement());
}

TEST_CASE("the hash of a request has the content of the samples, whichever process has read them") {
  auto hash = [](int reader, const std::string& content) {
    entered_calls calls;
    for (int rank = 0; rank < 3; ++rank) {
      auto request = train(0, 5);
      if (rank == reader) request.content = content;
      calls.enter(rank, request);
    }
    return calls.hash_of_request();
  };
  CHECK(hash(0, "f32") == hash(2, "f32"));
  CHECK(hash(0, "f32") != hash(0, "u8"));
  CHECK(hash(0, "f32") != hash(0, ""));
}
