#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <numeric>

#include "runtime/collective/cases/member_hosts.hpp"
#include "runtime/collective/cases/process_group.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace troupe::testing;

namespace {

using calls = std::function<void(communicator&)>;

group_description three(const std::string& name, int rank) { return {name, {0, 1, 2}, rank}; }

/// What a member is told that makes these calls.
collective_error error_of_member(communicator& group, const calls& made) {
  try {
    made(group);
  } catch (const collective_error& error) {
    return error;
  }
  expect(false, "an error");
  throw std::logic_error("not reached");
}

void expect_right_sum(communicator& group) {
  auto x = group.allocate({4000});
  std::ranges::fill(x.values<float>(), static_cast<float>(group.rank() + 1));
  group.all_reduce(x).wait();
  for (float each : x.values<float>()) expect(each == 6, "the sum in a new group");
}

/// Slow processes are not taken for stopped ones, which would end their connections.
network_options patient(network_options of_rank) {
  of_rank.answer_timeout = std::chrono::seconds(60);
  return of_rank;
}

void expect_mismatch(network_of_rank network, const calls& of_others, const calls& of_one,
                     const std::string& others_say, const std::string& one_says) {
  temp_folder folder;
  spawn_ranks(3, [&](test_rank& self) {
    folder_store place(folder.path());
    ucx_group_resources resources("token", patient(network(self.rank())));
    auto group = make_ucx_group(three("failing", self.rank()), place, resources);
    auto error = error_of_member(*group, self.rank() == 1 ? of_one : of_others);
    std::string told = error.what();
    expect(error.kind() == collective_failure::mismatch, "a mismatch: " + told);
    expect(std::ranges::count(error.ranks(), 1) == 1 && error.ranks().size() == 2, "rank 1 and another one");
    expect(error.group() == "failing" && error.sequence() > 0, "group and number: " + told);
    expect(told.find(others_say) != told.npos && told.find(one_says) != told.npos, "both calls: " + told);
    expect_right_sum(*make_ucx_group(three("after", self.rank()), place, resources));
    self.barrier(1);
  });
}

/// Rank 1 of three makes other calls than ranks 0 and 2: all are told both, and a new group works.
void expect_mismatch(const calls& of_others, const calls& of_one, const std::string& others_say,
                     const std::string& one_says) {
  for (auto network : all_networks) expect_mismatch(network, of_others, of_one, others_say, one_says);
}

}  // namespace

TEST_CASE("a member with another size is named on all members") {
  for (std::int64_t size : {4, 100000})
    expect_mismatch([&](communicator& group) { group.all_reduce(group.allocate({size})).wait(); },
                    [&](communicator& group) { group.all_reduce(group.allocate({size + 1})).wait(); },
                    "f32[" + std::to_string(size) + "]", "f32[" + std::to_string(size + 1) + "]");
}

TEST_CASE("a member with another dtype is named on all members") {
  for (std::int64_t size : {4, 100000})
    expect_mismatch([&](communicator& group) { group.all_reduce(group.allocate({size})).wait(); },
                    [&](communicator& group) { group.all_reduce(group.allocate({size}, dtype::i32)).wait(); },
                    "f32[", "i32[");
}

TEST_CASE("a member with another root or another reduction is named on all members") {
  expect_mismatch([](communicator& group) { group.broadcast(tensor::zeros({9}), 0).wait(); },
                  [](communicator& group) { group.broadcast(tensor::zeros({9}), 2).wait(); }, "root 0",
                  "root 2");
  expect_mismatch([](communicator& group) { group.all_reduce(tensor::zeros({9})).wait(); },
                  [](communicator& group) { group.all_reduce(tensor::zeros({9}), reduce_op::max).wait(); },
                  "all_reduce(sum", "all_reduce(max");
}

TEST_CASE("a member with another logical-rank map is named on all members") {
  const std::vector<logical_rank_map> maps{
      logical_rank_map({{0}, {1}, {2}}), logical_rank_map({{1}, {0}, {2}}),
      logical_rank_map({{0, 1, 2}, {}, {}}), logical_rank_map({{}, {0, 1, 2}, {}}),
      logical_rank_map({{0, 1}, {2, 3}, {4, 5}})};
  for (std::int64_t size : {4, 100000})
    for (std::size_t i = 0; i < maps.size(); ++i) {
      auto with = [size](const logical_rank_map& map) {
        return [=](communicator& group) {
          auto num_nodes = static_cast<std::int64_t>(map.nodes_of(group.rank()).size());
          group.all_reduce_leaves(group.allocate({num_nodes, size}), group.allocate({size}), map).wait();
        };
      };
      const auto &ours = maps[i], &theirs = maps[(i + 1) % maps.size()];
      expect_mismatch(with(ours), with(theirs), text_of_logical_ranks(ours.signature()),
                      text_of_logical_ranks(theirs.signature()));
    }
}

TEST_CASE("a member with another order of calls is named on all members") {
  expect_mismatch(
      [](communicator& group) {
        group.barrier().wait();
        group.all_reduce(tensor::zeros({9})).wait();
        group.broadcast(tensor::zeros({9}), 0).wait();
      },
      [](communicator& group) {
        group.barrier().wait();
        group.broadcast(tensor::zeros({9}), 0).wait();
        group.all_reduce(tensor::zeros({9})).wait();
      },
      "all_reduce(sum, f32[9])", "broadcast(f32[9], root 0)");
}

TEST_CASE("a member that calls in another group is named on the members that wait for it") {
  for (auto network : all_networks) {
    temp_folder folder;
    spawn_ranks(3, [&](test_rank& self) {
      folder_store place(folder.path());
      ucx_group_resources resources("token", patient(network(self.rank())));
      auto first = make_ucx_group(three("first", self.rank()), place, resources);
      auto second = make_ucx_group(three("second", self.rank()), place, resources);
      const call_options limited{.timeout = std::chrono::milliseconds(2000)};
      self.barrier(1);
      auto& called = self.rank() == 1 ? *second : *first;
      auto error = error_of_member(called, [&](communicator& group) {
        group.all_reduce(tensor::zeros({9}), reduce_op::sum, limited).wait();
      });
      expect(error.kind() == collective_failure::timed_out, "no other member entered the call in time");
      expect(error.group() == (self.rank() == 1 ? "second" : "first"), "the group in question");
      auto missing = self.rank() == 1 ? std::vector<world_rank>{0, 2} : std::vector<world_rank>{1};
      expect(error.ranks() == missing, std::string("those who did not come: ") + error.what());
      self.barrier(2);
      expect_right_sum(*make_ucx_group(three("after", self.rank()), place, resources));
      self.barrier(3);
    });
  }
}
