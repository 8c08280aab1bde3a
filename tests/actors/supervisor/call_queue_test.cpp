#include "troupe/supervisor/program_calls.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

using namespace troupe;
using namespace troupe::actors::supervisor;

namespace {

actors::job::call_request call(std::uint32_t index) {
  return {index, actors::job::call_kind::barrier, 0, 0, 0, 0};
}

actors::job::call_result result(std::uint32_t index) {
  actors::job::call_result made;
  made.index = index;
  return made;
}

actors::job::call_result repeated(std::uint32_t index) {
  auto made = result(index);
  made.is_repeated = true;
  return made;
}

using outcome = call_queue::outcome;
const outcome nothing, begins{{}, true};

}  // namespace

TEST_CASE("a call begins when it is entered, and its end is delivered once") {
  call_queue calls;
  CHECK(calls.enter(call(0)) == begins);
  CHECK(calls.current() == call(0));
  CHECK(calls.finished(result(0)) == outcome{{result(0)}, false});
  CHECK_FALSE(calls.current());
  CHECK(calls.finished(result(0)) == nothing);
  CHECK(calls.completed()->size() == 1);
}

TEST_CASE("calls queued behind one that the program left begin one after the other") {
  call_queue calls;
  calls.enter(call(0));
  CHECK(calls.enter(call(1)) == nothing);
  CHECK(calls.enter(call(2)) == nothing);
  CHECK(calls.finished(result(0)) == outcome{{result(0)}, true});
  CHECK(calls.current() == call(1));
  CHECK(calls.finished(result(1)) == outcome{{result(1)}, true});
  CHECK(calls.current() == call(2));
}

TEST_CASE("queued calls that have finished meanwhile are answered before the next one begins") {
  call_queue calls;
  for (std::uint32_t index : {0, 1, 2}) calls.enter(call(index));
  calls.completed()->add(std::vector<actors::job::call_result>{result(0), result(1)});
  CHECK(calls.finished(result(0)) == outcome{{result(0), result(1)}, true});
  CHECK(calls.current() == call(2));
}

TEST_CASE("a call that is finished before it is entered has its result at once, as a repeated one") {
  call_queue calls;
  calls.completed()->add(std::vector<actors::job::call_result>{result(0), result(1)});
  CHECK(calls.enter(call(0)) == outcome{{repeated(0)}, false});
  CHECK(calls.enter(call(1)) == outcome{{repeated(1)}, false});
  CHECK(calls.enter(call(2)) == begins);
  CHECK(calls.finished(result(2)) == outcome{{result(2)}, false});
}

TEST_CASE(
    "a result that the process missed, or that a snapshot had, is a repeated one for its program only") {
  call_queue calls;
  calls.enter(call(0));
  CHECK(calls.finished(result(0), true) == outcome{{repeated(0)}, false});
  CHECK(calls.completed()->newest() == result(0));
  auto saved = result(1);
  saved.from_snapshot = true;
  calls.enter(call(1));
  auto told = calls.finished(saved).told;
  REQUIRE(told.size() == 1);
  CHECK(told[0].is_repeated);
  CHECK_FALSE(calls.completed()->newest().is_repeated);
}

TEST_CASE("a call entered while other processes are in the previous one begins when that one ends") {
  call_queue calls;
  calls.enter(call(1));
  CHECK(calls.finished(result(0)) == begins);
  CHECK(calls.current() == call(1));
}

TEST_CASE("the end of a call that the program is not in is not delivered") {
  call_queue calls;
  CHECK(calls.finished(result(0)) == nothing);
  CHECK(calls.completed()->size() == 1);
}

TEST_CASE("the number of calls queued behind one that does not end is bounded") {
  call_queue calls;
  std::uint32_t index = 0;
  calls.enter(call(index++));
  for (std::size_t i = 0; i < call_queue::max_waiting; ++i) calls.enter(call(index++));
  CHECK_THROWS_AS(calls.enter(call(index)), std::length_error);
}
