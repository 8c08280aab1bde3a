#include "troupe/cluster/key_values.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace troupe;
using namespace troupe::cluster;
using Catch::Matchers::ContainsSubstring;

namespace {

key_values::bytes bytes_of(std::size_t count) { return key_values::bytes(count, std::byte{7}); }

}  // namespace

TEST_CASE("a key holds the value that was put last") {
  key_values table;
  CHECK(table.find("a") == nullptr);
  CHECK(table.put("a", bytes_of(3)).empty());
  CHECK(table.put("a", bytes_of(2)).empty());
  REQUIRE(table.find("a"));
  CHECK(*table.find("a") == bytes_of(2));
}

TEST_CASE("keys and values that are too long are refused") {
  key_values table;
  CHECK(
      table.put(std::string(key_values::max_key_bytes, 'k'), bytes_of(key_values::max_value_bytes)).empty());
  CHECK_THAT(table.put(std::string(key_values::max_key_bytes + 1, 'k'), {}),
             ContainsSubstring("got 257 and 0"));
  CHECK_THAT(table.put("a", bytes_of(key_values::max_value_bytes + 1)), ContainsSubstring("got 1 and 32769"));
  CHECK(table.find("a") == nullptr);
  CHECK_THAT(table.wait(std::string(key_values::max_key_bytes + 1, 'k'), {}), ContainsSubstring("257"));
}

TEST_CASE("a full table takes nothing more, and replacing frees what was there") {
  key_values table;
  auto entry = key_values::max_value_bytes + 8;
  auto count = key_values::max_total_bytes / entry;
  auto key = [](std::size_t i) { return std::to_string(10000000 + i); };
  for (std::size_t i = 0; i < count; ++i)
    REQUIRE(table.put(key(i), bytes_of(key_values::max_value_bytes)).empty());
  CHECK_THAT(table.put(key(count), bytes_of(key_values::max_value_bytes)), ContainsSubstring("full"));
  CHECK(table.put(key(0), bytes_of(key_values::max_value_bytes)).empty());
  CHECK(table.put(key(0), {}).empty());
  CHECK(table.put(key(count), bytes_of(key_values::max_value_bytes - 8)).empty());
}

TEST_CASE("waiters for a key are answered once, unless they timed out or disconnected") {
  key_values table;
  key_values::waiter first{0, 0, 5}, second{1, 2, 5}, third{2, 0, 1}, other{0, 0, 6};
  for (const auto& each : {first, second, third}) CHECK(table.wait("a", each).empty());
  CHECK(table.wait("b", other).empty());
  table.forget(second);
  table.forget_all(2);
  CHECK(table.take_waiters("a") == std::vector{first});
  CHECK(table.take_waiters("a").empty());
  CHECK(table.take_waiters("b") == std::vector{other});
}

TEST_CASE("the number of waits of one process is bounded") {
  key_values table;
  for (std::uint64_t i = 0; i < key_values::max_waiting; ++i) REQUIRE(table.wait("a", {3, 0, i}).empty());
  CHECK_THAT(table.wait("a", {3, 0, key_values::max_waiting}), ContainsSubstring("1024"));
  CHECK(table.wait("a", {4, 0, 0}).empty());
  table.forget({3, 0, 17});
  CHECK(table.wait("a", {3, 0, key_values::max_waiting}).empty());
}
