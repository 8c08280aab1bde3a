#include "troupe/trace/event_segment.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <random>
#include <thread>

#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::trace::event_segment;

namespace {

troupe::trace::trace_event written_event(std::uint64_t number) {
  return {.begin_ns = static_cast<std::int64_t>(number),
          .end_ns = static_cast<std::int64_t>(2 * number),
          .generation = 3 * number,
          .step = 5 * number,
          .stage = static_cast<std::int32_t>(number % 1000),
          .microbatch = static_cast<std::int32_t>(number % 77),
          .bytes = number % 1'000'000};
}

bool is_numbered_without_gap(const std::vector<troupe::trace::trace_event>& events) {
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i] != written_event(static_cast<std::uint64_t>(events[i].begin_ns))) return false;
    if (i > 0 && events[i].begin_ns != events[i - 1].begin_ns + 1) return false;
  }
  return true;
}

/// Reads a value at an offset of a file.
template <class Value>
void overwrite(int file, off_t offset, Value value) {
  REQUIRE(::pwrite(file, &value, sizeof value, offset) == sizeof value);
}

}  // namespace

TEST_CASE("a segment returns each thread's events with its name") {
  event_segment segment({.num_rings = 3, .events_per_ring = 4, .num_names = 4}, 5, 2);
  auto* first = segment.claim("device 0");
  auto* second = segment.claim("main");
  REQUIRE(first);
  REQUIRE(second);
  for (std::uint64_t i = 0; i < 6; ++i) first->record(written_event(i));
  auto group = segment.number_of("dp");
  CHECK(group == segment.number_of("dp"));
  second->record({.name = group});
  auto copy = segment.copy();
  CHECK(copy.rank == 5);
  CHECK(copy.incarnation == 2);
  CHECK(copy.pid == static_cast<std::uint32_t>(::getpid()));
  REQUIRE(copy.threads.size() == 2);
  CHECK(copy.threads[0].name == "device 0");
  CHECK(copy.threads[0].num_recorded == 6);
  CHECK(copy.threads[0].events ==
        std::vector{written_event(2), written_event(3), written_event(4), written_event(5)});
  CHECK(copy.threads[1].name == "main");
  CHECK(copy.threads[1].thread == static_cast<std::uint32_t>(::gettid()));
  CHECK(copy.name_of(copy.threads[1].events.at(0)) == "dp");
}

TEST_CASE("more threads than rings and more names than places are counted") {
  event_segment segment({.num_rings = 1, .events_per_ring = 4, .num_names = 2});
  CHECK(segment.claim("a"));
  CHECK_FALSE(segment.claim("b"));
  CHECK_FALSE(segment.claim("b"));
  CHECK(segment.number_of("c") == 0);
  auto copy = segment.copy();
  CHECK(copy.num_unrecorded == 2);
  CHECK(copy.num_unnamed == 1);
  CHECK(copy.names == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a long name is cut and an empty one is none") {
  event_segment segment({.num_rings = 1, .events_per_ring = 1, .num_names = 2});
  auto number = segment.number_of(std::string(100, 'x'));
  CHECK(number == segment.number_of(std::string(60, 'x')));
  CHECK(segment.copy().names.at(0) == std::string(60, 'x'));
  CHECK(segment.number_of("") == 0);
}

TEST_CASE("the ring of the thread that ended first goes to a new one, which keeps none of its events") {
  event_segment segment({.num_rings = 2, .events_per_ring = 4, .num_names = 8});
  auto* first = segment.claim("first");
  auto* second = segment.claim("second");
  for (std::uint64_t i = 0; i < 3; ++i) first->record(written_event(i));
  second->record(written_event(7));
  segment.release(*first);
  CHECK(segment.copy().threads[0].has_ended);
  CHECK(segment.copy().threads[0].events.size() == 3);
  segment.release(*second);
  auto* third = segment.claim("third");
  CHECK(third == first);
  third->record(written_event(9));
  auto copy = segment.copy();
  CHECK(copy.threads[0].name == "third");
  CHECK(copy.threads[0].num_recorded == 1);
  CHECK(copy.threads[0].events == std::vector{written_event(9)});
  CHECK(copy.threads[1].events == std::vector{written_event(7)});
}

TEST_CASE("threads that come and go while others read leave whole events") {
  event_segment segment({.num_rings = 3, .events_per_ring = 16, .num_names = 8});
  std::atomic<int> running = 4;
  std::vector<std::jthread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) {
        auto* ring = segment.claim("writer " + std::to_string(i));
        if (!ring) continue;
        for (std::uint64_t k = 0; k < 50; ++k) ring->record(written_event(k));
        segment.release(*ring);
      }
      --running;
    });
  bool all_whole = true;
  do {
    for (const auto& thread : segment.copy().threads)
      all_whole = all_whole && is_numbered_without_gap(thread.events) && thread.events.size() <= 16;
  } while (running > 0);
  CHECK(all_whole);
}

TEST_CASE("a killed process leaves whole events in memory that another one holds") {
  std::mt19937 random(3);
  for (int round = 0; round < 40; ++round) {
    auto file = event_segment::make_file({.num_rings = 2, .events_per_ring = 32, .num_names = 2}, 1, 4);
    auto child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      auto segment = event_segment::of_file(file.get());
      auto* ring = segment->claim("writer");
      for (std::uint64_t i = 0;; ++i) ring->record(written_event(i));
    }
    // Killed anywhere after a number of events that is drawn.
    auto enough = random() % 20'000 + 1;
    troupe::trace::process_events seen;
    do {
      seen = troupe::trace::read_events(file.get());
    } while (seen.threads.empty() || seen.threads[0].num_recorded < enough);
    ::kill(child, SIGKILL);
    REQUIRE(::waitpid(child, nullptr, 0) == child);
    auto left = troupe::trace::read_events(file.get());
    REQUIRE(left.threads.size() == 1);
    CHECK(left.pid == static_cast<std::uint32_t>(child));
    CHECK(left.threads[0].num_recorded >= seen.threads[0].num_recorded);
    const auto& events = left.threads[0].events;
    // The oldest is lost if the writer was killed while it wrote over it.
    CHECK(events.size() >= std::min<std::uint64_t>(31, left.threads[0].num_recorded));
    CHECK(is_numbered_without_gap(events));
    CHECK(events.back() == written_event(left.threads[0].num_recorded - 1));
  }
}

TEST_CASE("memory for events is used by one process") {
  auto file = event_segment::make_file({.num_rings = 1, .events_per_ring = 1, .num_names = 1}, 0, 0);
  CHECK(troupe::trace::read_events(file.get()).pid == 0);
  auto used = event_segment::of_file(file.get());
  CHECK_THROWS_WITH(event_segment::of_file(file.get()), ContainsSubstring(std::to_string(::getpid())));
}

TEST_CASE("what holds no events of this version is refused") {
  auto file = event_segment::make_file({.num_rings = 1, .events_per_ring = 1, .num_names = 1}, 0, 0);
  overwrite(file.get(), 8, std::uint32_t{7});
  CHECK_THROWS_WITH(troupe::trace::read_events(file.get()),
                    ContainsSubstring("version 7") && ContainsSubstring("expected version 1"));
  overwrite(file.get(), 8, std::uint32_t{1});
  overwrite(file.get(), 12, std::uint32_t{1'000'000});
  CHECK_THROWS_WITH(troupe::trace::read_events(file.get()), ContainsSubstring("damaged or incomplete"));
  overwrite(file.get(), 0, std::uint64_t{7});
  CHECK_THROWS_AS(event_segment::of_file(file.get()), troupe::bad_input);
  troupe::posix::unique_fd unsealed(::memfd_create("test", 0));
  CHECK_THROWS_WITH(event_segment::of_file(unsealed.get()), ContainsSubstring("sealed"));
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  troupe::posix::unique_fd read(ends[0]), write(ends[1]);
  CHECK_THROWS_AS(event_segment::of_file(read.get()), troupe::bad_input);
  CHECK_THROWS_AS(troupe::trace::read_events(read.get()), troupe::bad_input);
}

TEST_CASE("whatever the memory contains, a reader reads within it") {
  std::mt19937_64 random(5);
  troupe::trace::event_segment_size size{.num_rings = 3, .events_per_ring = 4, .num_names = 3};
  for (int round = 0; round < 200; ++round) {
    auto file = event_segment::make_file(size, 0, 0);
    // Everything after the sizes.
    for (off_t at = 24; at < static_cast<off_t>(troupe::trace::event_segment_layout::size_bytes(size));
         at += 8)
      if (at < 64 || at >= 4096) overwrite(file.get(), at, random() % 3 == 0 ? random() : random() % 4);
    auto read = troupe::trace::read_events(file.get());
    CHECK(read.threads.size() <= 3);
    for (const auto& thread : read.threads) CHECK(thread.events.size() <= 4);
  }
}

TEST_CASE("events are written to a file and read back") {
  troupe::testing::temp_folder folder;
  event_segment segment({.num_rings = 4, .events_per_ring = 64, .num_names = 4}, 3, 1);
  auto* device = segment.claim("device 3");
  segment.claim("idle");
  auto name = segment.number_of("dp");
  for (std::uint64_t i = 0; i < 100; ++i) device->record(written_event(i));
  device->record({.name = name});
  auto written = segment.copy();
  auto file = folder.path() / "events.bin";
  troupe::trace::write_events(written, file, 10);
  auto read = troupe::trace::read_events(file);
  CHECK(read.rank == 3);
  CHECK(read.incarnation == 1);
  CHECK(read.pid == written.pid);
  CHECK(read.name_of(read.threads.at(0).events.back()) == "dp");
  REQUIRE(read.threads.size() == 2);
  CHECK(read.threads[0].name == "device 3");
  CHECK(read.threads[0].num_recorded == 101);
  CHECK(std::ranges::equal(read.threads[0].events, std::span(written.threads[0].events).last(10)));
  CHECK(read.threads[1].events.empty());
}

TEST_CASE("a file that lies where events are written at first is replaced, and what it leads to stays") {
  troupe::testing::temp_folder folder;
  auto precious = folder.path() / "precious", file = folder.path() / "events.bin";
  std::ofstream(precious) << "text";
  auto partial = folder.path() / "events.bin.partial";
  SECTION("a symbolic link") { std::filesystem::create_symlink(precious, partial); }
  SECTION("a hard link") { std::filesystem::create_hard_link(precious, partial); }
  troupe::trace::write_events(event_segment().copy(), file);
  troupe::trace::read_events(file);
  CHECK(std::filesystem::file_size(precious) == 4);
}

TEST_CASE("a file of events that is cut short is named") {
  troupe::testing::temp_folder folder;
  auto file = folder.path() / "events.bin";
  troupe::trace::write_events(event_segment().copy(), file);
  for (auto size : {0, 10, 30, 5000}) {
    std::filesystem::resize_file(file, static_cast<std::uintmax_t>(size));
    CHECK_THROWS_AS(troupe::trace::read_events(file), troupe::bad_input);
    CHECK_THROWS_WITH(troupe::trace::read_events(file), ContainsSubstring(file.string()));
  }
  CHECK_THROWS_AS(troupe::trace::read_events(folder.path() / "missing"), troupe::system_failure);
  CHECK_THROWS_AS(troupe::trace::write_events({}, folder.path() / "missing" / "events.bin"),
                  troupe::system_failure);
}

TEST_CASE("an event is told in words") {
  troupe::trace::process_events of{.names = {"dp"}};
  CHECK(troupe::trace::describe(of, {.generation = 2, .step = 7, .stage = 1, .microbatch = 3}) ==
        "F stage 1 microbatch 3 step 7 generation 2");
  CHECK(troupe::trace::describe(
            of, {.step = 4, .kind = troupe::trace::trace_kind::collective_begun, .name = 1, .bytes = 4096}) ==
        "collective begun dp bytes 4096 sequence 4");
  CHECK(troupe::trace::describe(of,
                                {.step = 5,
                                 .stage = 0,
                                 .kind = troupe::trace::trace_kind::wait_begun,
                                 .detail = static_cast<std::uint8_t>(troupe::trace::wait_reason::samples)}) ==
        "wait begun for samples stage 0 step 5");
  CHECK(troupe::trace::describe(of, {.kind = troupe::trace::trace_kind::send, .peer = 3}) ==
        "send to rank 3");
}
