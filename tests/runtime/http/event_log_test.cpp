#include "troupe/http/event_log.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::http;

namespace {
constexpr std::size_t much = 1 << 20;
}

TEST_CASE("a client reads on after the event that it has") {
  event_log events;
  CHECK(events.after(0, much).text.empty());
  events.append("step", "{\"step\":1}");
  events.append("step", "{\"step\":2}");
  auto first = events.after(0, much);
  CHECK(first.text == "id: 1\nevent: step\ndata: {\"step\":1}\n\nid: 2\nevent: step\ndata: {\"step\":2}\n\n");
  CHECK(first.last_id == 2);
  CHECK(events.after(2, much).text.empty());
  CHECK(events.after(1, much).text == "id: 2\nevent: step\ndata: {\"step\":2}\n\n");
}

TEST_CASE("a client that falls behind is told how many events it missed") {
  event_log events(3);
  for (int i = 0; i < 10; ++i) events.append("n", std::to_string(i));
  auto next = events.after(2, much);
  CHECK(next.text.starts_with("id: 7\nevent: dropped\ndata: {\"events\":5}\n\nid: 8\nevent: n\ndata: 7\n\n"));
  CHECK(next.last_id == 10);
  CHECK(events.after(0, much).text.starts_with("id: 8\n"));
}

TEST_CASE("an id of an earlier process begins anew") {
  event_log events;
  events.append("n", "1");
  auto next = events.after(500, much);
  CHECK(next.text == "id: 0\nevent: restarted\ndata: {}\n\nid: 1\nevent: n\ndata: 1\n\n");
  CHECK(next.last_id == 1);
}

TEST_CASE("a log is bounded in bytes, and so is what a client gets at a time") {
  event_log events(1000, 10'000);
  for (int i = 0; i < 100; ++i) events.append("n", std::string(1000, 'x'));
  std::size_t num_pieces = 0, bytes = 0;
  std::uint64_t id = 1;
  while (true) {
    auto next = events.after(id, 2500);
    if (next.text.empty()) break;
    CHECK(next.text.size() <= 2500);
    id = next.last_id;
    ++num_pieces;
    bytes += next.text.size();
  }
  CHECK(id == 100);
  CHECK(num_pieces == 5);
  CHECK(bytes <= 10'100);
}

TEST_CASE("an event that is larger than a piece comes alone") {
  event_log events(10, 100);
  events.append("n", std::string(1000, 'x'));
  CHECK(events.after(0, 10).last_id == 1);
}
