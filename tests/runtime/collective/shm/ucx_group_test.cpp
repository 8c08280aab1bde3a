#include "troupe/collective/group/ucx_group.hpp"

#include <catch2/catch_test_macros.hpp>

#include "runtime/collective/cases/process_group.hpp"
#include "troupe/error/errors.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace troupe::testing;

namespace {

void with_group(int count, const std::function<void(communicator&)>& body) {
  with_ucx_group(count, {}, [&](communicator& group, test_rank& self) {
    body(group);
    self.barrier(1000);  // no process ends while others still wait for its group
  });
}

void expect_sum(communicator& group, tensor x) {
  auto values = x.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(group.rank() + 1) + static_cast<float>(i % 7);
  group.all_reduce(x, reduce_op::sum, {.progress = progress_by::waiter}).wait();
  auto n = static_cast<float>(group.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    expect(values[i] == n * (n + 1) / 2 + n * static_cast<float>(i % 7), "the sum of all");
}

}  // namespace

TEST_CASE("processes of a host sum tensors in shared memory, and tensors outside it") {
  for (int count : {1, 2, 3, 5}) {
    with_group(count, [](communicator& group) {
      for (std::int64_t size : {1, 9, 1024, 1025, 3001, 300001})
        for (int i = 0; i < 5; ++i) {
          expect_sum(group, group.allocate({size}));
          expect_sum(group, tensor::zeros({size}));
        }
    });
  }
}

TEST_CASE("parts of one allocation are reduced in place") {
  with_group(3, [](communicator& group) {
    auto whole = group.allocate({16, 5000});
    for (std::int64_t i = 0; i < 16; i += 2) expect_sum(group, whole.rows(i, 2));
  });
}

TEST_CASE("segments of freed tensors are used again") {
  temp_folder folder;
  spawn_ranks(2, [&](test_rank& self) {
    folder_store place(folder.path());
    ucx_group_resources resources("token");
    auto group = make_ucx_group(world_group(self), place, resources);
    for (int i = 0; i < 300; ++i) expect_sum(*group, group->allocate({4000}));
    auto statistics = resources.heap.statistics();
    expect(statistics.num_from_system == 1, "one segment for all tensors");
    expect(statistics.current == 0 && statistics.cached == 16384, "the segment kept for the next tensor");
    for (int i = 0; i < 300; ++i) {
      expect_sum(*group, group->allocate({4000}));
      resources.heap.release_cached();
    }
    expect(resources.heap.statistics().cached == 0, "nothing kept");
    self.barrier(1);
  });
}

TEST_CASE("groups of the same processes run concurrently") {
  temp_folder folder;
  spawn_ranks(3, [&](test_rank& self) {
    folder_store place(folder.path());
    ucx_group_resources resources("token");
    auto first = make_ucx_group(world_group(self, "first"), place, resources);
    auto second = make_ucx_group(world_group(self, "second"), place, resources);
    auto a = first->allocate({50000}), b = second->allocate({70000});
    for (int i = 0; i < 10; ++i) {
      auto x = first->all_reduce(a);
      auto y = second->all_reduce(b);
      x.wait();
      y.wait();
    }
    if (self.rank() != 1) {
      group_description pair{"pair", {0, 2}, self.rank() / 2};
      expect_sum(*make_ucx_group(pair, place, resources), a);
    }
    self.barrier(1);
  });
}

TEST_CASE("large messages are sent from one process to another") {
  with_group(2, [](communicator& group) {
    for (std::int64_t size : {0, 10, 5000, 500000}) {
      auto own = tensor::full({size}, static_cast<float>(group.rank() + size)),
           other = group.allocate({size});
      auto sent = group.send(own, 1 - group.rank());
      group.receive(other, 1 - group.rank()).wait();
      sent.wait();
      for (float each : other.values<float>())
        expect(each == static_cast<float>(1 - group.rank() + size), "what the other sent");
    }
  });
}

TEST_CASE("processes that know each other make further groups without the store") {
  temp_folder folder;
  spawn_ranks(3, [&](test_rank& self) {
    folder_store place(folder.path());
    int num_requests = 0;
    checked_store counted(place, [&] { ++num_requests; });
    ucx_group_resources resources("token");
    auto first = make_ucx_group(world_group(self, "first"), counted, resources);
    expect(num_requests > 0, "processes to tell about themselves");
    num_requests = 0;
    for (int i = 0; i < 20; ++i) {
      auto all = make_ucx_group(world_group(self, "all " + std::to_string(i)), counted, resources);
      expect_sum(*all, all->allocate({3000}));
      if (self.rank() == 1) continue;
      group_description pair{"pair " + std::to_string(i), {2, 0}, self.rank() == 0 ? 1 : 0};
      expect_sum(*make_ucx_group(pair, counted, resources), all->allocate({2}));
    }
    // But for a look now and then, whether one that is waited for has said that it cannot come.
    expect(num_requests < 20, "hardly a request to the store, got " + std::to_string(num_requests));
    self.barrier(1);
  });
}

TEST_CASE("members that wait for a group are told when one of them gives up") {
  temp_folder folder;
  spawn_ranks(3, [&](test_rank& self) {
    folder_store place(folder.path());
    ucx_group_resources resources("token");
    auto first = make_ucx_group(world_group(self, "first"), place, resources);
    std::vector<world_rank> named;
    try {
      if (self.rank() != 2)  // which does not come
        make_ucx_group(world_group(self, "late"), place, resources,
                       {.timeout = std::chrono::milliseconds(self.rank() == 1 ? 2000 : 200000)});
    } catch (const collective_error& error) {
      named = error.ranks();
    }
    if (self.rank() != 2)
      expect(named == std::vector<world_rank>{self.rank() == 1 ? 2 : 1}, "who is missing");
    self.barrier(2);
  });
}

TEST_CASE("a process of another job is refused") {
  temp_folder folder;
  spawn_ranks(2, [&](test_rank& self) {
    folder_store place(folder.path());
    ucx_group_resources resources(self.rank() == 0 ? "token" : "another token");
    std::string told;
    try {
      make_ucx_group(world_group(self), place, resources, {.timeout = std::chrono::seconds(60)});
    } catch (const collective_error& error) {
      told = error.what();
    }
    expect(told.find("do not share memory") != std::string::npos,
           "both members to hear that they cannot meet");
    self.barrier(1);
  });
}

TEST_CASE("members with differing algorithm sizes are refused, and the error names the sizes") {
  temp_folder folder;
  spawn_ranks(3, [&](test_rank& self) {
    folder_store place(folder.path());
    ucx_group_resources resources("token", {.sizes = network_sizes_from(self.rank() == 2 ? "block=1M" : "")});
    std::string told;
    try {
      make_ucx_group(world_group(self), place, resources);
    } catch (const bad_input& error) {
      told = error.what();
    }
    expect(told.find("block=524288,blocks_ahead=3 on rank 0") != std::string::npos &&
               told.find("block=1048576,blocks_ahead=3 on rank 2") != std::string::npos,
           "all members to hear whose sizes differ");
    self.barrier(1);
  });
}

TEST_CASE("a member that never comes is named when the group is made") {
  temp_folder folder;
  spawn_ranks(2, [&](test_rank& self) {
    if (self.rank() == 1) return self.barrier(1);
    folder_store place(folder.path());
    ucx_group_resources resources("token");
    try {
      make_ucx_group(world_group(self), place, resources, {.timeout = std::chrono::milliseconds(50)});
      expect(false, "no group");
    } catch (const collective_error& error) {
      expect(error.kind() == collective_failure::timed_out && error.ranks() == std::vector<world_rank>{1},
             "rank 1 named");
    }
    self.barrier(1);
  });
}
