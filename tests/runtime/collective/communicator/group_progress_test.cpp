#include "troupe/collective/communicator/group_progress.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <condition_variable>
#include <functional>

#include "troupe/collective/calls/operation.hpp"
#include "troupe/collective/calls/work.hpp"
#include "troupe/posix/wake_event.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// Calls that end when the test lets them, and what was asked of the backend.
class scripted_backend : public collective_backend {
 public:
  std::string_view name() const override { return "scripted"; }
  algorithm run(const collective_operation& what, std::uint64_t sequence) override {
    ++num_begun;
    {
      std::lock_guard lock(mutex_);
      begun_.push_back(to_string(what.signature) + " #" + std::to_string(sequence));
    }
    if (what.peer >= 0 && on_begin_of_message) on_begin_of_message();
    co_await until([this, &what] {
      if (fails) throw collective_error(collective_failure::lost_member, "g", 1, {3}, "rank 3 ended");
      return (what.peer >= 0 ? messages_may_end : num_may_end) > 0;
    });
    --(what.peer >= 0 ? messages_may_end : num_may_end);
  }
  void progress() override { ++num_looks_; }
  void announce_sleep(int engine_event) override {
    {
      std::lock_guard lock(mutex_);
      engine_event_ = engine_event;
    }
    if (!sleeps) looks_before_sleep = num_looks_;
    sleeps = true;
    sleeps.notify_all();
  }
  void sleep(std::chrono::microseconds at_most) override {
    std::unique_lock lock(mutex_);
    awake_.wait_for(lock, at_most, [&] { return std::exchange(woken_, false); });
  }
  void wake() override {
    std::lock_guard lock(mutex_);
    woken_ = true;
    awake_.notify_all();
    if (engine_event_ != no_event) posix::wake_event::set(engine_event_);
  }
  std::vector<member_state> examine(std::uint64_t) override { return {}; }
  void abort(const collective_error& why) noexcept override { aborted_with = why.what(); }

  std::vector<std::string> begun() {
    std::lock_guard lock(mutex_);
    return begun_;
  }

  std::atomic<int> num_may_end = 0, messages_may_end = 0, num_begun = 0;
  std::atomic<bool> fails = false, sleeps = false;
  int looks_before_sleep = 0;  ///< to be read once it sleeps
  std::string aborted_with;
  std::function<void()> on_begin_of_message;  ///< called on the thread that polls

 private:
  std::mutex mutex_;
  std::condition_variable awake_;
  bool woken_ = false;
  int engine_event_ = no_event;
  std::vector<std::string> begun_;
  int num_looks_ = 0;
};

operation_queue::callbacks hooks() {
  operation_queue::callbacks all;
  all.on_timeout = [](const call& late) {
    return std::make_exception_ptr(
        collective_error(collective_failure::timed_out, "g", late.sequence, {}, "too late"));
  };
  all.on_cancel = [](const call& unwanted) {
    return std::make_exception_ptr(
        collective_error(collective_failure::cancelled, "g", unwanted.sequence, {}, "given up"));
  };
  all.on_wait = [](const call&) {};
  all.on_end = [](const call&) {};
  return all;
}

struct scripted_group {
  scripted_backend backend;
  group_progress queue;

  explicit scripted_group(operation_queue::callbacks told = hooks(),
                          std::shared_ptr<progress_engine> engine = std::make_shared<progress_engine>())
      : queue(backend, std::move(told), std::move(engine)) {}

  std::shared_ptr<call> submit(progress_by by = progress_by::waiter, std::chrono::milliseconds timeout = 1h,
                               collective_operation what = {}) {
    auto added = std::make_shared<call>();
    added->what = std::move(what);
    added->options = {timeout, by};
    queue.submit(added);
    return added;
  }
  work handle(std::shared_ptr<call> of) { return {std::move(of), queue}; }
  void let_end(int count) {
    backend.num_may_end += count;
    backend.wake();
  }
};

}  // namespace

TEST_CASE("collective calls run one after the other, in their order") {
  scripted_group given;
  auto first = given.submit(), second = given.submit();
  given.let_end(1);
  given.handle(first).wait();
  CHECK(first->finished);
  CHECK_FALSE(second->finished);
  given.let_end(1);
  given.handle(second).wait();
  CHECK(given.backend.begun() == std::vector<std::string>{"barrier #1", "barrier #2"});
  CHECK(given.queue.num_unfinished() == 0);
}

TEST_CASE("messages run beside a collective call that waits") {
  scripted_group given;
  auto stuck = given.submit();
  auto message = given.submit(progress_by::waiter, 1h, send_of(tensor::zeros({1}), 1));
  given.backend.messages_may_end = 1;
  given.handle(message).wait();
  CHECK_FALSE(stuck->finished);
  given.let_end(1);
  given.handle(stuck).wait();
}

TEST_CASE("calls complete in the background without a waiting thread") {
  scripted_group given;
  auto added = given.submit(progress_by::background);
  given.let_end(1);
  added->finished.wait(false);
  CHECK(added->finished);
}

TEST_CASE("for calls without a waiting thread the engine sleeps at once instead of spinning") {
  auto looks_before_sleep = [](progress_by by) {
    scripted_group given;
    auto only = given.submit(by);
    std::thread ender([&] {
      given.backend.sleeps.wait(false);
      given.let_end(1);
    });
    if (by == progress_by::background) given.backend.sleeps.wait(false);
    given.handle(only).wait();
    ender.join();
    return given.backend.looks_before_sleep;
  };
  CHECK(looks_before_sleep(progress_by::background) < looks_before_sleep(progress_by::waiter));
}

TEST_CASE("many threads wait for calls of both kinds, and all are woken") {
  scripted_group given;
  std::vector<std::shared_ptr<call>> calls;
  for (int i = 0; i < 60; ++i)
    calls.push_back(given.submit(i % 2 == 0 ? progress_by::waiter : progress_by::background));
  std::vector<std::thread> threads;
  for (std::size_t first = 0; first < 4; ++first)
    threads.emplace_back([&, first] {
      for (std::size_t i = calls.size(); i-- > 0;)
        if (i % 4 == first) given.handle(calls[i]).wait();
    });
  for (int i = 0; i < 60; ++i) given.let_end(1);
  for (auto& each : threads) each.join();
  CHECK(given.queue.num_unfinished() == 0);
}

TEST_CASE("threads that start to wait while the engine stops are not forgotten") {
  scripted_group given;
  given.let_end(4000);
  for (int i = 0; i < 2000; ++i) {
    auto behind = given.submit(progress_by::background);
    auto waited = given.submit(progress_by::waiter);
    given.handle(waited).wait();
    given.handle(behind).wait();
  }
  CHECK(given.queue.num_unfinished() == 0);
}

TEST_CASE("a call that times out fails with all calls after it") {
  scripted_group given;
  auto late = given.submit(progress_by::waiter, 20ms), next = given.submit();
  CHECK_THROWS_MATCHES(given.handle(late).wait(), collective_error,
                       MessageMatches(ContainsSubstring("too late")));
  CHECK_THROWS_AS(given.handle(next).wait(), collective_error);
  CHECK_THROWS_AS(given.handle(given.submit()).wait(), collective_error);
  CHECK(given.backend.aborted_with == "too late");
}

TEST_CASE("the timeout of a call runs while other calls complete continuously") {
  scripted_group* all = nullptr;
  std::atomic<bool> others_ended = false;
  auto told = hooks();
  auto last = call::clock::now() + 20s;
  told.on_end = [&](const call& ended) {  // each message that ends is followed by the next one
    others_ended = call::clock::now() > last;
    if (ended.what.peer < 0 || ended.error || others_ended) return;
    ++all->backend.messages_may_end;
    all->submit(progress_by::waiter, 1h, send_of(tensor::zeros({2000}), 1));
  };
  scripted_group given(told);
  all = &given;
  auto late = given.submit(progress_by::waiter, 20ms);
  given.submit(progress_by::waiter, 1h, send_of(tensor::zeros({2000}), 1));
  given.backend.messages_may_end = 1;
  CHECK_THROWS_MATCHES(given.handle(late).wait(), collective_error,
                       MessageMatches(ContainsSubstring("too late")));
  CHECK_FALSE(others_ended);
}

TEST_CASE("small calls with no earlier call in flight complete before a thread waits for them") {
  scripted_group given;
  given.let_end(1);
  CHECK(given.submit()->finished);
  auto second = given.submit();
  CHECK_FALSE(second->finished);
  CHECK(given.backend.begun() == std::vector<std::string>{"barrier #1", "barrier #2"});
  given.let_end(1);
  given.handle(second).wait();
}

TEST_CASE("a waiting thread is not forgotten while other threads begin calls") {
  scripted_group given;
  std::atomic<bool> done = false;
  std::thread beginning([&] {
    while (!done) {
      ++given.backend.messages_may_end;
      given.handle(given.submit(progress_by::waiter, 1h, send_of(tensor::zeros({1}), 1))).wait();
    }
  });
  for (int i = 0; i < 2000; ++i) {
    auto waited = given.submit(progress_by::waiter);
    given.let_end(1);
    given.handle(waited).wait();
  }
  done = true;
  beginning.join();
  CHECK(given.queue.num_unfinished() == 0);
}

namespace {

/// Counts how often the engine prepares to sleep, and never has work for it.
class sleep_counter final : public progress_engine::client {
 public:
  explicit sleep_counter(progress_engine& engine) : place_(engine, *this) { place_.request(); }
  std::atomic<int> num_sleeps = 0;

 private:
  bool advance() override { return false; }
  bool prepare_sleep(wake_sources&) override {
    ++num_sleeps;
    return true;
  }
  bool is_idle() override { return false; }

  progress_engine::place place_;  // ends first
};

}  // namespace

TEST_CASE("the engine looks again when a thread has kept it out while that thread began a call") {
  auto engine = std::make_shared<progress_engine>();
  scripted_group given(hooks(), engine);
  auto behind = given.submit(progress_by::background);
  given.backend.sleeps.wait(false);
  sleep_counter after_group(*engine);
  while (after_group.num_sleeps == 0) std::this_thread::yield();
  given.backend.on_begin_of_message = [&] {
    int before = after_group.num_sleeps;
    given.let_end(1);  // wakes the engine, which finds the group's lock taken
    while (after_group.num_sleeps == before) std::this_thread::yield();
  };
  given.backend.messages_may_end = 1;
  CHECK(given.submit(progress_by::waiter, 1h, send_of(tensor::zeros({1}), 1))->finished);
  behind->finished.wait(false);
  CHECK(given.queue.num_unfinished() == 0);
}

TEST_CASE("the timeout of a call starts when the calls before it have ended") {
  scripted_group given;
  auto first = given.submit(), second = given.submit(progress_by::waiter, 300ms);
  std::thread waiting([&] { given.handle(first).wait(); });
  while (given.backend.num_begun == 0) std::this_thread::yield();
  std::this_thread::sleep_for(350ms);
  given.let_end(2);
  waiting.join();
  CHECK_NOTHROW(given.handle(second).wait());
}

TEST_CASE("a failure of the backend reaches every call") {
  scripted_group given;
  auto first = given.submit(progress_by::background), second = given.submit();
  given.backend.fails = true;
  given.backend.wake();
  for (const auto& each : {first, second})
    CHECK_THROWS_MATCHES(given.handle(each).wait(), collective_error,
                         MessageMatches(ContainsSubstring("rank 3")));
  CHECK(given.backend.aborted_with == "rank 3 ended");
}

TEST_CASE("cancelling a call ends its waiters and all other calls") {
  scripted_group given;
  auto first = given.submit(), second = given.submit();
  std::string told;
  std::thread waiting([&] {
    try {
      given.handle(second).wait();
    } catch (const collective_error& error) {
      told = error.what();
    }
  });
  while (given.backend.num_begun == 0) std::this_thread::yield();
  given.handle(first).cancel();
  waiting.join();
  CHECK(told == "given up");
  CHECK(given.backend.aborted_with == told);
  CHECK_NOTHROW(given.handle(first).cancel());
}

TEST_CASE("a group destroyed with calls in flight fails them and aborts the group") {
  scripted_backend backend;
  auto added = std::make_shared<call>();
  {
    group_progress queue(backend, hooks(), std::make_shared<progress_engine>());
    added->options.timeout = 1h;
    queue.submit(added);
    while (backend.num_begun == 0) std::this_thread::yield();
  }
  CHECK(added->finished);
  CHECK_THROWS_AS(std::rethrow_exception(added->error), collective_error);
  CHECK_THAT(backend.aborted_with, ContainsSubstring("calls in flight"));
}
