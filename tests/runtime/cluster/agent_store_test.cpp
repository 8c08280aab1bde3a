#include "troupe/cluster/agent_store.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_predicate.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <future>

#include "live_agent.hpp"
#include "troupe/cluster/key_values.hpp"
#include "troupe/collective/rendezvous/store.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/job_error/job_errors.hpp"

using namespace troupe;
using namespace troupe::cluster;
using namespace troupe::testing;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

using bytes = std::vector<std::byte>;

bytes bytes_of(const std::string& text) {
  auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

}  // namespace

TEST_CASE("a value that one thread puts into a memory store is returned to another thread") {
  collective::memory_store keys;
  CHECK(!keys.get("a", 0ms));
  auto waiting = std::async(std::launch::async, [&] { return keys.get("a", 60s); });
  keys.put("a", bytes_of("first"));
  CHECK(waiting.get() == bytes_of("first"));
  keys.put("a", bytes_of(""));
  CHECK(keys.get("a", 0ms) == bytes{});
}

TEST_CASE("members exchange values through the agent's store, put before or after a member waits for them") {
  live_agent job(job_of(2));
  test_member first(job.client(0)), second(job.client(1));
  first.join();
  second.join();
  first.link->keys().put("early", bytes_of("there already"));
  CHECK(second.link->keys().get("early", 60s) == bytes_of("there already"));
  auto waiting = std::async(std::launch::async, [&] { return first.link->keys().get("late", 60s); });
  auto waiting_too = std::async(std::launch::async, [&] { return second.link->keys().get("late", 60s); });
  second.link->keys().put("late", bytes_of("now"));
  CHECK(waiting.get() == bytes_of("now"));
  CHECK(waiting_too.get() == bytes_of("now"));
}

TEST_CASE("a wait for a key that times out returns nothing, and can be repeated") {
  live_agent job(job_of(1));
  test_member only(job.client(0));
  only.join();
  CHECK(!only.link->keys().get("never", 1ms));
  only.link->keys().put("never", bytes_of("after all"));
  CHECK(only.link->keys().get("never", 60s) == bytes_of("after all"));
}

TEST_CASE("keys and values over the limits are refused before they are sent") {
  live_agent job(job_of(1));
  test_member only(job.client(0));
  only.join();
  auto& keys = only.link->keys();
  CHECK_THROWS_AS(keys.put(std::string(257, 'k'), {}), std::invalid_argument);
  CHECK_THROWS_AS(keys.get(std::string(257, 'k'), 1ms), std::invalid_argument);
  CHECK_THROWS_AS(keys.put("a", bytes(key_values::max_value_bytes + 1)), std::invalid_argument);
  keys.put("a", bytes(key_values::max_value_bytes));
  CHECK(keys.get("a", 60s)->size() == key_values::max_value_bytes);
}

TEST_CASE("a put into a full store is an error", "[many]") {
  live_agent job(job_of(1));
  test_member only(job.client(0));
  only.join();
  auto fill = [&] {
    for (int i = 0; i <= 2048; ++i)
      only.link->keys().put(std::to_string(i), bytes(key_values::max_value_bytes));
  };
  CHECK_THROWS_MATCHES(fill(), std::invalid_argument, MessageMatches(ContainsSubstring("store is full")));
}

TEST_CASE("a wait for a key ends with the job") {
  live_agent job(job_of(2));
  test_member first(job.client(0)), second(job.client(1));
  first.join();
  second.join();
  first.views.next();
  auto waiting = std::async(std::launch::async, [&] { return first.link->keys().get("never", 60s); });
  second.link->fail_job("no data");
  CHECK_THROWS_MATCHES(waiting.get(), job_failed, MessageMatches(ContainsSubstring("no data")));
  CHECK_THROWS_AS(first.link->keys().put("a", {}), job_failed);
}

TEST_CASE("a wait for a key in a job that a signal stops says so: the exit code depends on it") {
  live_agent job(job_of(2));
  test_member only(job.client(0));
  only.join();
  auto waiting = std::async(std::launch::async, [&] { return only.link->keys().get("never", 60s); });
  job.made->stop_job(15);
  auto is_stop = [](const job_stopped& stopped) { return stopped.signal() == 15; };
  CHECK_THROWS_MATCHES(waiting.get(), job_stopped, Catch::Matchers::Predicate<job_stopped>(is_stop));
  CHECK_THROWS_MATCHES(only.link->keys().put("a", {}), job_stopped,
                       MessageMatches(ContainsSubstring("stopped before it began")));
}

TEST_CASE("a process that replaces a lost one waits for keys under its own incarnation") {
  live_agent job(job_of(2));
  test_member first(job.client(0));
  first.join();
  {
    test_member lost(job.client(1));
    lost.join();
    first.views.next();
    CHECK(!lost.link->keys().get("a", 1ms));
  }
  auto now = std::chrono::steady_clock::now();
  CHECK(job.made->process_lost(1, "killed by SIGKILL", now, now) == loss_outcome::await_replacement);
  test_member replacement(job.client(1, 1));
  replacement.join();
  auto waiting = std::async(std::launch::async, [&] { return replacement.link->keys().get("a", 60s); });
  first.link->keys().put("a", bytes_of("for the living"));
  CHECK(waiting.get() == bytes_of("for the living"));
}
