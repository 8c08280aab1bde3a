#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <iterator>
#include <random>
#include <thread>

#include "runtime/collective/cases/elements.hpp"
#include "runtime/collective/cases/member_hosts.hpp"
#include "runtime/collective/cases/process_group.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace troupe::testing;

namespace {

using groups = std::vector<std::unique_ptr<communicator>>;

/// Groups of all processes, for this process.
groups make_groups(int count, const test_rank& self, store& keys, ucx_group_resources& resources,
                   const communicator_options& options = {}) {
  groups made;
  for (int i = 0; i < count; ++i)
    made.push_back(make_ucx_group(world_group(self, "group " + std::to_string(i)), keys, resources, options));
  return made;
}

/// Calls drawn from a seed, the same on all members; who makes progress on them, and which are waited for, is
/// drawn on each member.
void make_drawn_calls(communicator& group, unsigned seed, int num_calls) {
  std::mt19937 same(seed), own(seed * 100 + static_cast<unsigned>(group.rank()));
  std::vector<std::pair<tensor, work>> running;
  for (int i = 0; i < num_calls; ++i) {
    constexpr std::array<std::int64_t, 4> counts{1, 200, 3000, 60000};
    auto count = counts[same() % counts.size()];
    call_options how{.progress = own() % 2 == 0 ? progress_by::waiter : progress_by::background};
    auto x = own() % 2 == 0 ? group.allocate({count}) : tensor::empty({count}, dtype::f32);
    fill(x, [&](std::int64_t) { return group.rank() + i; });
    auto sum = group.all_reduce(x, reduce_op::sum, how);
    if (own() % 2 == 0) sum.wait();
    running.emplace_back(std::move(x), std::move(sum));
  }
  group.barrier().wait();  // so all have ended, although nobody has waited for some
  auto n = group.size();
  for (int i = 0; i < num_calls; ++i) {
    auto& [x, sum] = running[static_cast<std::size_t>(i)];
    expect(sum.is_done(), "calls to end that nobody waits for");
    expect_elements(x, [&](std::int64_t) { return n * i + n * (n - 1) / 2; });
  }
}

void use_from_threads(network_of_rank network, int num_groups, unsigned seed) {
  temp_folder folder;
  auto body = [&](test_rank& self) {
    folder_store place(folder.path());
    ucx_group_resources resources("token", network(self.rank()));
    auto all = make_groups(num_groups, self, place, resources);
    constexpr std::size_t num_threads = 3;
    std::array<std::exception_ptr, num_threads> failed;
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < num_threads; ++thread)
      threads.emplace_back([&, thread] {
        try {
          for (auto i = thread; i < all.size(); i += num_threads)
            make_drawn_calls(*all[i], seed + static_cast<unsigned>(i), 12);
        } catch (...) {
          failed[thread] = std::current_exception();
        }
      });
    for (auto& each : threads) each.join();
    for (auto& each : failed)
      if (each) std::rethrow_exception(each);
    self.barrier(1);
  };
  spawn_ranks(4, body, std::chrono::seconds(200));
}

std::ptrdiff_t num_threads() {
  std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

/// Every member but the last one begins a call that nobody waits for.
std::vector<work> begin_calls(groups& all, const test_rank& self) {
  std::vector<work> begun;
  if (self.rank() + 1 < self.size())
    for (auto& each : all) begun.push_back(each->all_reduce(tensor::zeros({2000})));
  return begun;
}

/// One process writes into another's memory, which that one frees and uses for another group, whose calls a
/// second thread of the first process makes. The order of the two comes about in the other process.
void skip_under_thread_sanitizer() {
#if defined(__SANITIZE_THREAD__)
  SKIP("the thread sanitizer does not see that another process orders this one's threads");
#endif
}

}  // namespace

TEST_CASE("several threads use many groups at once, and nobody waits for some of the calls: seeds 0 to 2") {
  skip_under_thread_sanitizer();
  for (unsigned seed = 0; seed < 3; ++seed) use_from_threads(on_one_host, 24, seed * 1000);
  for (auto network : {over_network, on_hosts_of_two}) use_from_threads(network, 6, 7);
}

TEST_CASE("a process has as many threads with 40 groups under way as with one") {
  skip_under_thread_sanitizer();
  for (auto network : all_networks) {
    temp_folder folder;
    int most = network == on_one_host ? 40 : 8;
    spawn_ranks(4, [&](test_rank& self) {
      folder_store place(folder.path());
      ucx_group_resources resources("token", network(self.rank()));
      auto first = make_groups(1, self, place, resources);
      first[0]->all_reduce(tensor::zeros({2000}));  // starts the engine
      first[0]->barrier().wait();
      auto before = num_threads();
      groups all;
      for (int i = 1; i < most; ++i)
        all.push_back(make_ucx_group(world_group(self, "more " + std::to_string(i)), place, resources));
      auto begun = begin_calls(all, self);
      self.barrier(1);
      expect(num_threads() == before, "no more threads");
      if (begun.empty())
        for (auto& each : all) begun.push_back(each->all_reduce(tensor::zeros({2000})));
      for (auto& each : begun) each.wait();
      self.barrier(2);
    });
  }
}

TEST_CASE("when a process is killed with 64 groups under way, all of them fail and name it") {
  temp_folder folder;
  spawn_ranks(4, [&](test_rank& self) {
    folder_store place(folder.path());
    ucx_group_resources resources("token");
    auto all = make_groups(64, self, place, resources);
    auto begun = begin_calls(all, self);
    self.barrier(1);
    if (self.rank() == 0) self.kill(3);
    if (self.rank() == 3) self.wait_for_death(3);
    for (std::size_t i = 0; i < begun.size(); ++i) {
      while (!begun[i].is_done() && i % 2 == 0) std::this_thread::yield();
      try {
        begun[i].wait();
        expect(false, "a failure");
      } catch (const collective_error& error) {
        expect(error.kind() == collective_failure::lost_member, "a loss: " + std::string(error.what()));
        expect(error.ranks() == std::vector<world_rank>{3} && error.group() == all[i]->group().name,
               "rank 3 named: " + std::string(error.what()));
      }
    }
    group_description survivors{"after", {0, 1, 2}, self.rank()};
    make_drawn_calls(*make_ucx_group(survivors, place, resources), 1, 5);
    for (int each : {0, 1, 2}) {
      if (each == self.rank()) self.post(2);
      self.wait_for(each, 2);
    }
  });
}
