#include "troupe/trace/recording.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <thread>

namespace {

/// The events of threads in this process that are of one step, which no other test uses.
std::vector<troupe::trace::trace_event> of_step(std::uint64_t step) {
  std::vector<troupe::trace::trace_event> found;
  for (const auto& thread : troupe::trace::recording_segment()->copy().threads)
    for (const auto& event : thread.events)
      if (event.step == step) found.push_back(event);
  return found;
}

}  // namespace

TEST_CASE("threads record by themselves once recording has begun") {
  auto* before = troupe::trace::recording_segment();
  if (!before) troupe::trace::emit({.step = 1});
  auto* segment = troupe::trace::start_recording({.rank = 2});
  REQUIRE(segment);
  CHECK(troupe::trace::start_recording({}) == segment);
  CHECK(of_step(1).empty());
  troupe::trace::emit({.step = 2});
  std::jthread([] { troupe::trace::emit({.step = 2}); }).join();
  CHECK(of_step(2).size() == 2);
}

TEST_CASE("what a thread emits can go to another ring meanwhile") {
  REQUIRE(troupe::trace::start_recording({}));
  troupe::trace::event_ring other("other", 4);
  {
    troupe::trace::recording_to there(other);
    troupe::trace::emit({.step = 3});
  }
  troupe::trace::emit({.step = 4});
  CHECK(other.snapshot().size() == 1);
  CHECK(of_step(3).empty());
  CHECK(of_step(4).size() == 1);
}

TEST_CASE("threads that have ended leave room for others") {
  auto* segment = troupe::trace::start_recording({});
  REQUIRE(segment);
  for (int i = 0; i < 200; ++i) std::jthread([] { troupe::trace::emit({.step = 5}); }).join();
  CHECK(segment->copy().num_unrecorded == 0);
  CHECK_FALSE(of_step(5).empty());
}

TEST_CASE("a forked child records nothing in the memory of its parent, and may record itself") {
  REQUIRE(troupe::trace::start_recording({}));
  troupe::trace::emit({.step = 7});
  auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    troupe::trace::emit({.step = 6});
    bool is_off = !troupe::trace::recording_segment();
    bool begins = troupe::trace::start_recording({}) != nullptr;
    troupe::trace::emit({.step = 8});
    ::_exit(is_off && begins && of_step(8).size() == 1 && of_step(7).empty() ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(of_step(6).empty());
  CHECK(of_step(8).empty());
}

TEST_CASE("names have numbers while events are recorded") {
  REQUIRE(troupe::trace::start_recording({}));
  CHECK(troupe::trace::name_number("group") > 0);
  CHECK(troupe::trace::name_number("group") == troupe::trace::name_number("group"));
}
