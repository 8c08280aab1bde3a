#include <catch2/catch_test_macros.hpp>
#include <future>
#include <latch>

#include "troupe/collective/group/rendezvous.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace std::chrono_literals;

namespace {

using texts = std::vector<std::string>;

/// Says when a key is waited for.
struct watched_store final : store {
  memory_store keys;
  const std::string watched;
  std::latch is_awaited{1};
  std::atomic<bool> has_counted = false;

  explicit watched_store(std::string key) : watched(std::move(key)) {}
  void put(const std::string& key, std::span<const std::byte> value) override { keys.put(key, value); }
  void put_text(const std::string& key, const std::string& text) { put(key, std::as_bytes(std::span(text))); }
  std::optional<std::vector<std::byte>> get(const std::string& key,
                                            std::chrono::milliseconds timeout) override {
    if (key == watched && !has_counted.exchange(true)) is_awaited.count_down();
    return keys.get(key, timeout);
  }
};

}  // namespace

TEST_CASE("a thread that waits for a process that has not come keeps no other thread from one that has") {
  watched_store keys("address/1/0");
  known_processes known;
  auto texts_of = [&](const group_description& group) {
    rendezvous at(group, keys, 100s);
    return known.texts_of(at, "address", [] { return "mine"; });
  };
  const group_description with_late{"late", {0, 1}, 0}, with_present{"present", {0, 2}, 0};
  keys.put_text("address/2/0", "of two");
  auto waiting = std::async(std::launch::async, [&] { return texts_of(with_late); });
  keys.is_awaited.wait();
  CHECK(texts_of(with_present) == texts{"mine", "of two"});
  rendezvous at(with_present, keys, 100s);
  keys.put_text("address/2/0", "another of two");
  CHECK(known.read_again(at, "address", 1) == "another of two");
  keys.put_text("address/1/0", "of one");
  CHECK(waiting.get() == texts{"mine", "of one"});
}

TEST_CASE("what a process tells is put when it has changed") {
  memory_store keys;
  known_processes known;
  const group_description alone{"alone", {4}, 0};
  rendezvous at(alone, keys, 1s);
  for (std::string text : {"first", "first", "second"}) {
    CHECK(known.texts_of(at, "address", [&] { return text; }) == texts{text});
    auto bytes = keys.get("address/4/0", 1s).value();
    CHECK(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == text);
  }
}
