#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <numeric>

#include "runtime/collective/cases/collective_case.hpp"
#include "support/processes/joined_namespaces.hpp"
#include "support/processes/spawn_ranks.hpp"
#include "support/temp_folder.hpp"
#include "troupe/collective/group/ucx_group.hpp"
#include "troupe/collective/rendezvous/store.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace troupe::testing;

namespace {

/// A process of one of two hosts: even ranks are on the first.
struct host_process {
  folder_store place;
  ucx_group_resources resources;

  host_process(const joined_namespaces& hosts, const test_rank& self, const temp_folder& folder)
      : place((hosts.enter(self.rank() % 2), folder.path())),
        resources("token", {.interface = joined_namespaces::interface}) {}

  std::unique_ptr<communicator> make_group(const std::string& name, const std::vector<world_rank>& ranks,
                                           int rank) {
    auto member = std::ranges::find(ranks, rank) - ranks.begin();
    return make_ucx_group({name, ranks, static_cast<int>(member)}, place, resources);
  }
};

std::vector<world_rank> first_ranks(int count) {
  std::vector<world_rank> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

void expect_sum(communicator& group, const call_options& how = {}) {
  auto x = tensor::full({50000}, static_cast<float>(group.rank() + 1));
  group.all_reduce(x, reduce_op::sum, how).wait();
  auto n = static_cast<float>(group.size());
  for (float each : x.values<float>()) expect(each == n * (n + 1) / 2, "the sum of all members");
}

collective_error error_of_sums(communicator& group, const call_options& how = {}) {
  try {
    while (true) expect_sum(group, how);
  } catch (const collective_error& error) {
    return error;
  }
}

}  // namespace

TEST_CASE("a group on two hosts conforms to the backend contract", "[many]") {
  joined_namespaces hosts;
  temp_folder folder;
  auto body = [&](test_rank& self) {
    host_process own(hosts, self, folder);
    auto make_group = [&](const std::string& name, const std::vector<world_rank>& ranks) {
      return own.make_group(name, ranks, self.rank());
    };
    auto all = make_group("all", first_ranks(4));
    members given{*all, make_group, true};
    run_collective_cases(given);
    self.barrier(1);
  };
  spawn_ranks(4, body, std::chrono::seconds(300));
}

TEST_CASE("members on one of two hosts form a group over shared memory") {
  joined_namespaces hosts;
  temp_folder folder;
  spawn_ranks(4, [&](test_rank& self) {
    host_process own(hosts, self, folder);
    auto neighbours = self.rank() % 2 == 0 ? std::vector<world_rank>{0, 2} : std::vector<world_rank>{1, 3};
    auto near = own.make_group("near", neighbours, self.rank());
    auto all = own.make_group("all", first_ranks(4), self.rank());
    expect_sum(*near);
    expect_sum(*all);
    auto reachable = near->allocate({50000});
    auto in_reach = own.resources.heap.statistics().current;
    expect(in_reach >= 200000, "memory that the neighbour can reach");
    auto of_both = all->allocate({50000});
    expect(own.resources.heap.statistics().current >= in_reach + 200000, "the same in a group of both hosts");
    self.barrier(1);
  });
}

TEST_CASE("a member killed on the other host is named, and the others continue") {
  joined_namespaces hosts;
  temp_folder folder;
  spawn_ranks(3, [&](test_rank& self) {
    host_process own(hosts, self, folder);
    auto all = own.make_group("all", first_ranks(3), self.rank());
    expect_sum(*all);
    self.barrier(1);
    if (self.rank() == 0) self.kill(1);
    auto error = error_of_sums(*all);
    expect(error.kind() == collective_failure::lost_member && error.ranks() == std::vector<world_rank>{1},
           std::string("rank 1 lost: ") + error.what());
    expect_sum(*own.make_group("rest", {0, 2}, self.rank()));
    self.post(2);
    self.wait_for(2 - self.rank(), 2);
  });
}

TEST_CASE("after a network cut the members on each side name those on the other side") {
  joined_namespaces hosts;
  temp_folder folder;
  spawn_ranks(4, [&](test_rank& self) {
    host_process own(hosts, self, folder);
    auto all = own.make_group("all", first_ranks(4), self.rank());
    expect_sum(*all);
    self.barrier(1);
    if (self.rank() == 0) hosts.cut();
    self.barrier(2);
    auto error = error_of_sums(*all, {.timeout = std::chrono::seconds(2)});
    auto beyond = self.rank() % 2 == 0 ? std::vector<world_rank>{1, 3} : std::vector<world_rank>{0, 2};
    expect(error.kind() == collective_failure::timed_out || error.kind() == collective_failure::lost_member,
           std::string("a loss: ") + error.what());
    for (auto rank : error.ranks())
      expect(std::ranges::count(beyond, rank) == 1, std::string("the other host's ranks: ") + error.what());
    auto neighbours = self.rank() % 2 == 0 ? std::vector<world_rank>{0, 2} : std::vector<world_rank>{1, 3};
    expect_sum(*own.make_group("rest", neighbours, self.rank()));
    self.barrier(3);
  });
}
