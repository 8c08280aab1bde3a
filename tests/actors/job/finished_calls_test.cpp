#include "troupe/job/finished_calls.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>

#include "troupe/wire/codec.hpp"

using namespace troupe;
using namespace troupe::actors::job;

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
  CHECK(newest.size() < 140);
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

namespace {

/// As many calls as letters, of which each stands for what was asked for; B: a barrier.
std::shared_ptr<call_log> calls_of(const std::string& letters, bool from_snapshot = false) {
  auto log = std::make_shared<call_log>();
  for (std::uint32_t index = 0; index < letters.size(); ++index) {
    auto result = example(index);
    result.request_hash = static_cast<unsigned char>(letters[index]);
    result.kind = letters[index] == 'B' ? call_kind::barrier : call_kind::evaluate;
    result.from_snapshot = from_snapshot && letters[index] != 'B';
    log->add(result);
  }
  return log;
}

bool is_repeated(const std::shared_ptr<call_log>& recorded, const std::shared_ptr<call_log>& completed,
                 char next, std::size_t first = 0) {
  return result_to_repeat({*recorded, *completed, first}, static_cast<unsigned char>(next)).has_value();
}

}  // namespace

TEST_CASE("calls get the recorded results as long as all of them ask for the same") {
  auto recorded = calls_of("abBc");
  CHECK(is_repeated(recorded, calls_of(""), 'a'));
  CHECK(is_repeated(recorded, calls_of("a", true), 'b'));
  CHECK(is_repeated(recorded, calls_of("abB", true), 'c'));
  CHECK_FALSE(is_repeated(recorded, calls_of(""), 'b'));
  CHECK_FALSE(is_repeated(recorded, calls_of("abB", true), 'd'));
  CHECK_FALSE(is_repeated(recorded, calls_of("abBc", true), 'c'));
  // One was computed: from there on the state is the snapshot's.
  CHECK_FALSE(is_repeated(recorded, calls_of("ab"), 'B'));
  CHECK_FALSE(is_repeated(recorded, calls_of("abB"), 'c'));
}

TEST_CASE("calls before the job's first one are not compared") {
  auto recorded = calls_of("BBab"), completed = calls_of("BB");
  CHECK(is_repeated(recorded, completed, 'a', 2));
  CHECK_FALSE(is_repeated(recorded, calls_of("xa"), 'a', 0));
}

TEST_CASE("a repeated result is the recorded one, which says where it is from; a refused call has none") {
  call_log recorded;
  auto result = example();
  result.request_hash = 7;
  recorded.add(result);
  auto expected = result;
  expected.from_snapshot = true;
  call_log nothing;
  CHECK(result_to_repeat({recorded, nothing, 0}, 7) == expected);
  call_log refused;
  result.refused = "they differ";
  refused.add(result);
  CHECK_FALSE(result_to_repeat({refused, nothing, 0}, 7));
}

TEST_CASE("known results are not added twice; gaps and bytes that are no block are refused") {
  auto log = log_of(300), later = log_of(302);
  add_call(block_of_call(*log, 256), *log);
  CHECK(log->size() == 300);
  CHECK_THROWS_WITH(add_call(block_of_call(*later, 301), *log),
                    "expected the result of call 300, got that of call 301");
  CHECK_THROWS_AS(add_call(std::as_bytes(std::span("hello")), *log), wire::decode_error);
}
