#include "troupe/collective/engine/progress_engine.hpp"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <iterator>
#include <latch>
#include <random>
#include <set>

#include "troupe/collective/shm/local_group.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace std::chrono_literals;

namespace {

/// Work that is counted, done on the engine's thread. While it waits it is woken by the engine's event, or by
/// one of its own.
class counted_work final : public progress_engine::client {
 public:
  counted_work(progress_engine& engine, bool has_own_event) : engine_(engine), has_own_event_(has_own_event) {
    place_.emplace(engine, *this);
  }

  void add(int count) {
    left_ += count;
    place_->request();
  }
  /// Adds work without a request, as another process does.
  void add_by_event() {
    ++left_;
    has_own_event_ ? own_.set() : posix::wake_event::set(engine_.event());
  }
  /// Work that is announced and comes later.
  void expect_later() { is_expecting_ = true; }
  void end() { place_.reset(); }
  int num_done() const { return num_done_; }
  std::thread::id thread() const { return thread_; }

 private:
  bool advance() override {
    thread_ = std::this_thread::get_id();
    if (left_ == 0) return false;
    own_.clear();
    is_expecting_ = false;
    --left_;
    ++num_done_;  // last: whoever waits for it may call expect_later()
    return true;
  }
  bool prepare_sleep(wake_sources& sources) override {
    if (has_own_event_) sources.descriptors.push_back(own_.fd());
    return left_ == 0;
  }
  bool is_idle() override { return left_ == 0 && !is_expecting_; }

  progress_engine& engine_;
  bool has_own_event_;
  posix::wake_event own_;
  std::atomic<int> left_ = 0, num_done_ = 0;
  std::atomic<bool> is_expecting_ = false;
  std::atomic<std::thread::id> thread_;
  std::optional<progress_engine::place> place_;  // ends first
};

void wait_until_done(const counted_work& work, int count) {
  while (work.num_done() < count) std::this_thread::yield();
}

std::ptrdiff_t num_threads() {
  std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

}  // namespace

TEST_CASE("one thread advances all clients, while they ask for it") {
  // With the first thread the thread sanitizer starts one of its own. A thread that ended may still be
  // counted for a moment, so this one stays, and others may disappear meanwhile.
  std::latch may_end(1);
  std::jthread first([&] { may_end.wait(); });
  progress_engine engine;
  std::vector<std::unique_ptr<counted_work>> clients;
  auto threads_before = num_threads();
  for (int i = 0; i < 64; ++i) clients.push_back(std::make_unique<counted_work>(engine, i % 2 == 0));
  CHECK(num_threads() <= threads_before);
  for (int round = 1; round <= 3; ++round) {
    for (auto& each : clients) each->add(5);
    for (auto& each : clients) wait_until_done(*each, 5 * round);
  }
  std::set<std::thread::id> threads;
  for (auto& each : clients) threads.insert(each->thread());
  CHECK(threads.size() == 1);
  CHECK_FALSE(threads.contains(std::this_thread::get_id()));
  CHECK(num_threads() <= threads_before + 1);
  may_end.count_down();
}

TEST_CASE("a sleeping engine is woken by its event, and by the descriptors of its clients") {
  for (bool has_own_event : {false, true}) {
    progress_engine engine;
    counted_work waiting(engine, has_own_event), other(engine, true);
    for (int i = 1; i <= 20; ++i) {
      waiting.expect_later();
      other.add(1);
      waiting.add(0);
      wait_until_done(other, i);
      if (i % 2 == 0) std::this_thread::sleep_for(2ms);  // it sleeps by now
      waiting.add_by_event();
      wait_until_done(waiting, i);
    }
  }
}

TEST_CASE("clients come and go while the engine runs, and none is called after its end") {
  progress_engine engine;
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed)
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 300; ++i) {
        counted_work brief(engine, random() % 2 == 0);
        auto count = static_cast<int>(random() % 4);
        brief.add(count);
        if (random() % 2 == 0) wait_until_done(brief, count);
        brief.end();
        auto done = brief.num_done();
        if (random() % 8 == 0) std::this_thread::yield();
        if (brief.num_done() != done) std::terminate();
      }
    });
  for (auto& each : threads) each.join();
}

namespace {

/// Its calls fail at once, and aborting takes as long as the test wants.
class slow_to_abort final : public collective_backend {
 public:
  explicit slow_to_abort(std::latch& may_end) : may_end_(may_end) {}
  std::string_view name() const override { return "slow"; }
  algorithm run(const collective_operation&, std::uint64_t) override {
    co_await until([]() -> bool {
      throw collective_error(collective_failure::lost_member, "slow", 1, {1}, "rank 1 ended");
    });
  }
  void sleep(std::chrono::microseconds) override {}
  void wake() override {}
  std::vector<member_state> examine(std::uint64_t) override { return {}; }
  void abort(const collective_error&) noexcept override { may_end_.wait(); }

 private:
  std::latch& may_end_;
};

}  // namespace

TEST_CASE("a group that takes long to abort delays no other group of its engine") {
  communicator_options options{.engine = std::make_shared<progress_engine>()};
  std::latch may_end(1);
  communicator slow({"slow", {0, 1}, 0}, std::make_unique<slow_to_abort>(may_end), options);
  auto pair = make_local_group({0, 1}, options, "pair");
  auto stuck = slow.barrier();
  for (int i = 0; i < 20; ++i) {
    auto x = tensor::full({5000}, 1.0F), y = tensor::full({5000}, 2.0F);
    auto first = pair[0]->all_reduce(x), second = pair[1]->all_reduce(y);
    while (!first.is_done() || !second.is_done()) std::this_thread::yield();
    CHECK(x.values<float>()[4999] == 3.0F);
  }
  CHECK_FALSE(stuck.is_done());
  may_end.count_down();
  CHECK_THROWS_AS(stuck.wait(), collective_error);
}
