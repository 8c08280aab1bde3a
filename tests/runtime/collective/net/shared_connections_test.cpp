#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <iterator>
#include <random>
#include <thread>

#include "runtime/collective/cases/elements.hpp"
#include "runtime/collective/cases/error_of.hpp"
#include "runtime/collective/cases/process_group.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace troupe::testing;

namespace {

using namespace std::chrono_literals;

/// Slow processes are not taken for stopped ones.
const network_options slow_network{.path = group_path::network, .answer_timeout = 60s};

/// Numbers whose rounded sums differ for each order of the members.
tensor drawn_input(int member, std::int64_t count, unsigned seed) {
  std::minstd_rand random(seed * 31 + static_cast<unsigned>(member) + 1);
  auto x = tensor::empty({count}, dtype::f32);
  for (auto& each : x.values<float>()) each = static_cast<float>(random() % 2001) / 64 - 10;
  return x;
}

void expect_exact_sum(communicator& group, std::int64_t count, unsigned seed) {
  std::vector<tensor> inputs;
  std::vector<const std::byte*> places;
  for (int i = 0; i < group.size(); ++i)
    places.push_back(inputs.emplace_back(drawn_input(i, count, seed)).bytes().data());
  auto wanted = tensor::empty({count}, dtype::f32);
  auto* place = wanted.bytes().data();
  tree_reduce(places, {&place, 1}, count, dtype::f32, reduce_op::sum);
  auto x = drawn_input(group.rank(), count, seed);
  group.all_reduce(x).wait();
  expect(std::ranges::equal(x.bytes(), wanted.bytes()),
         "the bits of the tree in group " + group.group().name);
}

std::unique_ptr<communicator> make_group(const std::string& name, const std::vector<world_rank>& ranks,
                                         int rank, store& keys, ucx_group_resources& resources,
                                         const communicator_options& options = {}) {
  auto member = static_cast<int>(std::ranges::find(ranks, world_rank(rank)) - ranks.begin());
  return make_ucx_group({name, ranks, member}, keys, resources, options);
}

void run_threads(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::vector<std::exception_ptr> failed(count);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      try {
        body(i);
      } catch (...) {
        failed[i] = std::current_exception();
      }
    });
  for (auto& each : threads) each.join();
  for (auto& each : failed)
    if (each) std::rethrow_exception(each);
}

/// One thread on each process: makes groups of drawn members, calls in those that live, and ends some. What
/// is drawn is the same on all processes, so that all members come.
void use_drawn_groups(unsigned seed, const test_rank& self, store& keys, ucx_group_resources& resources) {
  std::mt19937 random(seed);
  std::vector<std::unique_ptr<communicator>> living;
  for (unsigned round = 0; round < 12; ++round) {
    std::vector<world_rank> ranks;
    for (int i = 0; i < self.size(); ++i) ranks.push_back(i);
    std::ranges::shuffle(ranks, random);
    ranks.resize(2 + random() % (ranks.size() - 1));
    auto name = std::to_string(seed) + '.' + std::to_string(round);
    living.push_back(std::ranges::count(ranks, world_rank(self.rank())) == 1
                         ? make_group(name, ranks, self.rank(), keys, resources)
                         : nullptr);
    for (int call = 0; call < 4; ++call) {
      constexpr std::array<std::int64_t, 4> counts{1, 300, 20000, 200000};
      const auto& group = living[random() % living.size()];
      auto count = counts[random() % counts.size()];
      if (group) expect_exact_sum(*group, count, seed + round);
    }
    if (random() % 2 == 0) living.erase(living.begin() + static_cast<int>(random() % living.size()));
    if (living.empty()) living.push_back(nullptr);
  }
}

void use_groups_on_threads(unsigned seed) {
  temp_folder folder;
  spawn_ranks(
      4,
      [&](test_rank& self) {
        folder_store place(folder.path());
        ucx_group_resources resources("token", slow_network);
        run_threads(3, [&](std::size_t thread) {
          use_drawn_groups(seed + static_cast<unsigned>(thread), self, place, resources);
        });
        self.barrier(1);
      },
      300s);
}

std::ptrdiff_t num_descriptors() {
  std::filesystem::directory_iterator open("/proc/self/fd");
  return std::distance(begin(open), end(open));
}

/// Rank 1 gives another size than the others.
void fail_by_mismatch(communicator& group) {
  auto error = error_of([&] {
    while (true) group.all_reduce(tensor::zeros({200000 + (group.rank() == 1 ? 1 : 0)})).wait();
  });
  expect(error.kind() == collective_failure::mismatch, "a mismatch: " + std::string(error.what()));
}

}  // namespace

TEST_CASE("threads of several processes make, use and end groups in drawn orders over shared connections") {
  use_groups_on_threads(100);
}
TEST_CASE("threads of several processes make, use and end groups in drawn orders: seeds 200 and 300",
          "[many]") {
  for (unsigned seed : {200, 300}) use_groups_on_threads(seed);
}

TEST_CASE("more groups over the network need no more descriptors") {
  temp_folder folder;
  spawn_ranks(3, [&](test_rank& self) {
    folder_store place(folder.path());
    ucx_group_resources resources("token", slow_network);
    auto first = make_ucx_group(world_group(self, "first"), place, resources);
    expect_exact_sum(*first, 20000, 1);
    self.barrier(1);
    auto before = num_descriptors();
    std::vector<std::unique_ptr<communicator>> more;
    constexpr int count = 60;
    for (int i = 0; i < count; ++i) {
      more.push_back(make_ucx_group(world_group(self, std::to_string(i)), place, resources));
      expect_exact_sum(*more.back(), 300, 2);
    }
    auto for_each_group = (num_descriptors() - before) / count;  // each has the event of its threads
    expect(for_each_group <= 2, "no connection of its own: " + std::to_string(for_each_group));
    self.barrier(2);
  });
}

TEST_CASE("groups that fail one after the other change no bit of a group that goes on beside them") {
  temp_folder folder;
  spawn_ranks(
      3,
      [&](test_rank& self) {
        folder_store place(folder.path());
        ucx_group_resources resources("token", slow_network);
        auto beside = make_ucx_group(world_group(self, "beside"), place, resources);
        run_threads(2, [&](std::size_t thread) {
          for (unsigned i = 0; i < 10; ++i)
            if (thread == 0)
              fail_by_mismatch(
                  *make_ucx_group(world_group(self, "fails " + std::to_string(i)), place, resources));
            else
              for (unsigned call = 0; call < 5; ++call) expect_exact_sum(*beside, 200000, 10 * i + call);
        });
        expect_exact_sum(*beside, 1000, 1);
        self.barrier(1);
      },
      300s);
}

TEST_CASE("messages of a group that a member has cancelled do not disturb the next one of the same ranks") {
  temp_folder folder;
  spawn_ranks(
      3,
      [&](test_rank& self) {
        folder_store place(folder.path());
        ucx_group_resources resources("token", slow_network);
        for (int i = 0; i < 20; ++i) {
          auto group = make_ucx_group(world_group(self, std::to_string(i)), place, resources);
          std::vector<work> running;
          for (int call = 0; call < 3; ++call) running.push_back(group->all_reduce(tensor::zeros({300000})));
          bool cancels = self.rank() == i % 3;
          if (cancels) running[static_cast<std::size_t>(i / 3 % 3)].cancel();
          try {
            if (!cancels)
              while (true) group->barrier().wait();
          } catch (const collective_error& error) {
            expect(error.kind() == collective_failure::cancelled, std::string("cancelled: ") + error.what());
          }
          group.reset();
          expect_exact_sum(*make_ucx_group(world_group(self, "after " + std::to_string(i)), place, resources),
                           50000, 1);
        }
        self.barrier(1);
      },
      300s);
}

TEST_CASE("a group of the next generation goes on when those of the one before are aborted") {
  temp_folder folder;
  spawn_ranks(3, [&](test_rank& self) {
    folder_store place(folder.path());
    ucx_group_resources resources("token", slow_network);
    auto of_generation = [&](std::uint64_t generation) {
      auto description = world_group(self, "generation " + std::to_string(generation));
      description.generation = generation;
      return make_ucx_group(description, place, resources);
    };
    auto old = of_generation(1);
    expect_exact_sum(*old, 20000, 1);
    for (std::uint64_t generation = 2; generation < 6; ++generation) {
      auto next = of_generation(generation);
      auto running = old->all_reduce(tensor::zeros({300000}));
      old->abort(collective_error(collective_failure::cancelled, "old", 0, {}, "its generation has ended"));
      expect_exact_sum(*next, 20000, 2);
      old = std::move(next);
      expect_exact_sum(*old, 20000, 3);
    }
    self.barrier(1);
  });
}

namespace {

/// Rank 2 is stopped or killed in large calls, and rank 3 takes its place in the next generation.
void replace_member(bool is_killed, unsigned seed) {
  temp_folder folder;
  constexpr int stopped = 2, resumed = 3, replaced = 4, left = 5;
  auto body = [&](test_rank& self) {
    folder_store place(folder.path());
    ucx_group_resources resources("token", {.path = group_path::network, .answer_timeout = 100ms});
    if (self.rank() < 3) {
      const call_options limited{.timeout = is_killed ? 60s : 1s};
      group_description description{.name = "1", .ranks = {0, 1, 2}, .member = self.rank(), .generation = 1};
      auto group = make_ucx_group(description, place, resources);
      std::thread striker;
      if (self.rank() == 0)
        striker = std::thread([&] {
          std::this_thread::sleep_for(std::chrono::microseconds(seed * 1700 % 20000));
          is_killed ? self.kill(2) : self.stop(2);
        });
      auto error = error_of([&] {
        while (true) group->all_reduce(tensor::zeros({300000}), reduce_op::sum, limited).wait();
      });
      if (striker.joinable()) striker.join();
      if (self.rank() == 2) return self.post(left);
      expect(error.ranks() == std::vector<world_rank>{2}, "rank 2 named: " + std::string(error.what()));
      self.post(stopped);
    }
    for (int each : {0, 1}) self.wait_for(each, stopped);
    auto member = std::min(self.rank(), 2);
    group_description description{
        .name = "2", .ranks = {0, 1, 2}, .member = member, .incarnations = {0, 0, 1}, .generation = 2};
    auto group = make_ucx_group(description, place, resources);
    for (unsigned call = 0; call < 5; ++call) expect_exact_sum(*group, 100000, seed + call);
    if (self.rank() == 0 && !is_killed) self.resume(2);
    self.post(resumed);
    for (int each : {0, 1, 3}) self.wait_for(each, resumed);
    for (unsigned call = 0; call < 20; ++call) expect_exact_sum(*group, 100000, seed + call);
    if (!is_killed) self.wait_for(2, left);
    expect_exact_sum(*group, 100000, seed);
    self.post(replaced);
    for (int each : {0, 1, 3}) self.wait_for(each, replaced);
  };
  spawn_ranks(4, body, 120s);
}

void replace_members(unsigned first_seed, unsigned end_seed) {
  for (unsigned seed = first_seed; seed < end_seed; ++seed) {
    INFO("seed " << seed);
    CHECK_NOTHROW(replace_member(seed % 2 == 0, seed));
  }
}

}  // namespace

TEST_CASE(
    "when a member is killed or stopped and replaced, the next generation connects anew: seeds 0 and 1") {
  replace_members(0, 2);
}
TEST_CASE("when a member is killed or stopped and replaced, the next generation connects anew: seeds 2 and 3",
          "[many]") {
  replace_members(2, 4);
}
TEST_CASE("when a member is killed or stopped and replaced, the next generation connects anew: seeds 4 to 29",
          "[.soak]") {
  replace_members(4, 30);
}
