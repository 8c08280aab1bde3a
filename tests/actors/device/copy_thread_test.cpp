#include "troupe/device/copy_thread.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using actors::devices::copy_thread;

namespace {

/// What is copied, and a gate that it waits at.
struct copied_numbers {
  std::mutex mutex;
  std::vector<int> numbers;
  std::condition_variable changed;
  std::atomic<bool> may_copy = true;

  void copy(int number) {
    may_copy.wait(false);
    std::lock_guard lock(mutex);
    numbers.push_back(number);
    changed.notify_all();
  }
  std::vector<int> wait_for(std::size_t count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return numbers.size() >= count; });
    return numbers;
  }
  std::vector<int> now() { return wait_for(0); }
  void open() {
    may_copy = true;
    may_copy.notify_all();
  }
};

void nothing_fails(std::uint64_t, std::exception_ptr) { std::abort(); }

}  // namespace

TEST_CASE("copies are made in the order in which they are given, while the giver goes on") {
  copied_numbers copied;
  copied.may_copy = false;
  copy_thread copies("copies", nothing_fails);
  for (int number = 0; number < 50; ++number) copies.add(1, [&, number] { copied.copy(number); });
  copied.open();
  auto all = copied.wait_for(50);
  CHECK(std::ranges::is_sorted(all));
  CHECK(all.size() == 50);
}

TEST_CASE("who waits goes on when all copies are made") {
  copied_numbers copied;
  copied.may_copy = false;
  copy_thread copies("copies", nothing_fails);
  CHECK(copies.wait_for(std::chrono::seconds(0)));
  CHECK_FALSE(copies.is_busy());
  for (int number = 0; number < 5; ++number) copies.add(1, [&, number] { copied.copy(number); });
  CHECK(copies.is_busy());
  CHECK_FALSE(copies.wait_for(std::chrono::milliseconds(1)));
  auto waited = std::async(std::launch::async, [&] {
    while (!copies.wait_for(std::chrono::seconds(1))) {
    }
    return copied.now().size();
  });
  copied.open();
  CHECK(waited.get() == 5);
}

TEST_CASE("whoever is told that all copies are made finds no copy under way") {
  copied_numbers copied;
  copied.may_copy = false;
  std::promise<bool> was_busy;
  std::unique_ptr<copy_thread> copies;
  copies =
      std::make_unique<copy_thread>("copies", nothing_fails, [&] { was_busy.set_value(copies->is_busy()); });
  for (int number = 0; number < 3; ++number) copies->add(1, [&, number] { copied.copy(number); });
  copied.open();
  CHECK_FALSE(was_busy.get_future().get());
  CHECK(copied.now().size() == 3);
}

TEST_CASE("what has not begun is forgotten, and what has is waited for") {
  copied_numbers copied;
  copied.may_copy = false;
  std::promise<void> begun;
  copy_thread copies("copies", nothing_fails);
  copies.add(1, [&] {
    begun.set_value();
    copied.copy(0);
  });
  for (int number = 1; number < 5; ++number) copies.add(1, [&, number] { copied.copy(number); });
  begun.get_future().wait();
  auto cleared = std::async(std::launch::async, [&] { copies.clear(); });
  copied.open();
  cleared.wait();
  auto number_copied = copied.now().size();
  copies.add(1, [&] { copied.copy(9); });
  auto all = copied.wait_for(number_copied + 1);
  CHECK(all.size() == number_copied + 1);
  CHECK(all.front() == 0);
  CHECK(all.back() == 9);
}

TEST_CASE("a failure is told once, and nothing is copied after it until all is forgotten") {
  copied_numbers copied;
  std::promise<std::string> told;
  copy_thread copies("copies", [&](std::uint64_t generation, std::exception_ptr cause) {
    try {
      std::rethrow_exception(cause);
    } catch (const std::exception& problem) {
      told.set_value(std::to_string(generation) + " " + problem.what());  // twice would throw
    }
  });
  copies.add(8, [&] { copied.copy(0); });
  copies.add(8, [] { throw std::runtime_error("no buffers"); });
  copies.add(8, [&] { copied.copy(1); });
  CHECK(told.get_future().get() == "8 no buffers");
  CHECK(copies.wait_for(std::chrono::seconds(0)));
  copies.clear();
  copies.add(9, [&] { copied.copy(7); });
  CHECK(copied.wait_for(2) == std::vector{0, 7});
}
