#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <mutex>
#include <thread>

#include "runtime/collective/cases/collective_case.hpp"
#include "troupe/collective/shm/local_group.hpp"

using namespace troupe;
using namespace troupe::collective;
using troupe::testing::members;

namespace {

// A member that fails a case ends, and leaves others waiting in groups that it has not made yet.
const communicator_options options{.timeout = std::chrono::seconds(100)};

/// Groups that threads make together: the first who asks makes all ends.
class local_groups {
 public:
  std::unique_ptr<communicator> take(const std::string& name, std::size_t size, int member) {
    std::lock_guard lock(mutex_);
    auto& ends = made_[name];
    if (ends.empty()) ends = make_local_group(static_cast<int>(size), options, name);
    return std::move(ends[static_cast<std::size_t>(member)]);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<std::unique_ptr<communicator>>> made_;
};

void run_member(communicator& all, local_groups& groups, std::string& failure) {
  members given{all,
                [&](const std::string& name, const std::vector<world_rank>& ranks) {
                  auto member = std::ranges::find(ranks, all.group().rank_of(all.rank())) - ranks.begin();
                  return groups.take(name, ranks.size(), static_cast<int>(member));
                },
                true};
  try {
    testing::run_collective_cases(given);
  } catch (const std::exception& error) {
    failure = error.what();
    all.abort(failure);
  }
}

void run_cases(int size) {
  auto group = make_local_group(size, options);
  local_groups groups;
  std::vector<std::string> failures(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < failures.size(); ++i)
    threads.emplace_back([&, i] { run_member(*group[i], groups, failures[i]); });
  for (auto& each : threads) each.join();
  for (const auto& failure : failures) CHECK(failure == "");
}

}  // namespace

TEST_CASE("a group of one thread conforms to the backend contract") { run_cases(1); }
TEST_CASE("groups of 2 and 3 threads conform to the backend contract", "[many]") {
  run_cases(2);
  run_cases(3);
}
TEST_CASE("a group of 4 threads conforms to the backend contract") { run_cases(4); }
TEST_CASE("a group of 5 threads conforms to the backend contract", "[many]") { run_cases(5); }
TEST_CASE("groups of 7 and 8 threads conform to the backend contract", "[.soak]") {
  run_cases(7);
  run_cases(8);
}
