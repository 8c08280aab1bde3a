#include "troupe/job/finished_calls.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <limits>
#include <memory>
#include <stdexcept>

#include "troupe/wire/codec.hpp"

using namespace troupe;

namespace {

call_result example(std::uint32_t index = 0) {
  call_result result;
  result.index = index;
  result.steps_done = 12;
  result.metrics = {0.1 + 0.2, 64, 17};
  result.weights_sha256 = "abc";
  result.timing.span_s = 1e-9;
  result.kind = call_kind::train;
  result.source = 3;
  return result;
}

std::shared_ptr<call_log> log_of(std::uint32_t num_results) {
  auto log = std::make_shared<call_log>();
  for (std::uint32_t index = 0; index < num_results; ++index) log->add(example(index));
  return log;
}

/// The first `num_results`, read into a log that knows nothing.
std::shared_ptr<call_log> read_back(const call_log& log, std::size_t num_results) {
  auto read = std::make_shared<call_log>();
  for (std::size_t index = 0; index < num_results; ++index) add_call(block_of_call(log, index), *read);
  return read;
}

}  // namespace

TEST_CASE("results of any number of calls come back from their blocks bit for bit") {
  for (std::uint32_t num_results : {0, 1, 256, 257, 1000}) {
    auto read = read_back(*log_of(1000), num_results);
    REQUIRE(read->size() == num_results);
    for (std::uint32_t index = 0; index < num_results; ++index) REQUIRE(read->at(index) == example(index));
  }
}

TEST_CASE("the block of a call is the same whenever it is asked, and that of an unknown call is refused") {
  auto log = log_of(10);
  auto newest = block_of_call(*log, 9);
  for (std::uint32_t index = 10; index < 1000; ++index) log->add(example(index));
  CHECK(block_of_call(*log, 9) == newest);
  CHECK(newest.size() < 120);
  CHECK_THROWS_AS(block_of_call(*log, 1000), std::out_of_range);
}

TEST_CASE("results with an infinite or NaN loss come back bit for bit") {
  for (double loss : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    auto log = std::make_shared<call_log>();
    auto result = example();
    result.metrics.loss_sum = loss;
    log->add(result);
    auto read = read_back(*log, 1)->at(0).metrics.loss_sum;
    CHECK(std::bit_cast<std::uint64_t>(read) == std::bit_cast<std::uint64_t>(loss));
  }
}

TEST_CASE("timelines are left out") {
  auto log = std::make_shared<call_log>();
  auto result = example();
  result.last_step.resize(1000);
  log->add(result);
  CHECK(read_back(*log, 1)->newest() == example());
}

TEST_CASE("known results are not added twice; gaps and bytes that are no block are refused") {
  auto log = log_of(300), later = log_of(302);
  add_call(block_of_call(*log, 256), *log);
  CHECK(log->size() == 300);
  CHECK_THROWS_WITH(add_call(block_of_call(*later, 301), *log),
                    "expected the result of call 300, got that of call 301");
  CHECK_THROWS_AS(add_call(std::as_bytes(std::span("hello")), *log), decode_error);
}
