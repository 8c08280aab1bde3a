#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <numeric>

#include "runtime/collective/cases/collective_case.hpp"
#include "runtime/collective/cases/fault_cases.hpp"
#include "runtime/collective/cases/process_group.hpp"
#include "support/processes/spawn_ranks.hpp"
#include "support/temp_folder.hpp"
#include "troupe/collective/group/ucx_group.hpp"
#include "troupe/collective/hierarchy/host_topology.hpp"
#include "troupe/collective/rendezvous/store.hpp"

using namespace troupe;
using namespace troupe::collective;
using namespace troupe::testing;

namespace {

/// The host of each rank.
using host_names = std::vector<std::string>;

const std::vector<host_names> placements{
    {"a", "a", "b", "b"}, {"a", "b", "b", "b"}, {"a", "b", "a", "b"}, {"a", "a", "b", "c", "c"}};

/// Small sizes, so that small tensors take every path.
network_options on(const std::string& host) {
  return {.host = host,
          .sizes = {.whole_inputs = 3000, .whole_broadcast = 3000, .block = 1000, .blocks_ahead = 2}};
}

void keep_promises(const host_names& hosts,
                   const std::function<network_options(const std::string&)>& options) {
  temp_folder folder;
  auto body = [&](test_rank& self) {
    folder_store place(folder.path());
    ucx_group_resources resources("token", options(hosts[static_cast<std::size_t>(self.rank())]));
    auto make_group = [&](const std::string& name, const std::vector<world_rank>& ranks) {
      auto member = std::ranges::find(ranks, self.rank()) - ranks.begin();
      return make_ucx_group({name, ranks, static_cast<int>(member)}, place, resources);
    };
    auto all = make_ucx_group(world_group(self), place, resources);
    members given{*all, make_group, true};
    run_collective_cases(given);
    self.barrier(1);
  };
  spawn_ranks(static_cast<int>(hosts.size()), body, std::chrono::seconds(300));
}

}  // namespace

TEST_CASE("groups over several hosts conform to the backend contract: placement 2", "[many]") {
  keep_promises(placements[1], on);
}
TEST_CASE("groups over several hosts conform to the backend contract: placements 1, 3 and 4", "[.soak]") {
  for (auto i : {0U, 2U, 3U}) keep_promises(placements[i], on);
}

TEST_CASE("eight members on two hosts get the bits of the tree with the default sizes") {
  host_names hosts{"a", "a", "a", "a", "b", "b", "b", "b"};
  temp_folder folder;
  auto body = [&](test_rank& self) {
    folder_store place(folder.path());
    ucx_group_resources resources("token", {.host = hosts[static_cast<std::size_t>(self.rank())]});
    auto all = make_ucx_group(world_group(self), place, resources);
    members given{*all, nullptr, true};
    for (const auto& each : fixed_order_cases()) each.run(given);
    auto x = tensor::full({3000001}, static_cast<float>(self.rank()));
    all->all_reduce(x).wait();
    expect(std::ranges::all_of(x.values<float>(), [](float each) { return each == 28; }), "0 + .. + 7");
    self.barrier(1);
  };
  spawn_ranks(8, body, std::chrono::seconds(300));
}

TEST_CASE("the profile shows which calls used the hierarchy of hosts") {
  temp_folder folder;
  auto body = [&](test_rank& self) {
    folder_store place(folder.path());
    ucx_group_resources resources("token", on_hosts_of_two(self.rank()));
    communicator_options options{.profile = std::make_shared<communication_profile>()};
    auto all = make_ucx_group(world_group(self), place, resources, options);
    auto x = tensor::zeros({300}), gathered = tensor::zeros({900}), sum = tensor::zeros({300});
    logical_rank_map even({{0, 1}, {2, 3}, {4, 5}}), uneven({{0, 1}, {2}, {}});
    all->all_reduce(x).wait();
    all->all_reduce_leaves(x, sum, even).wait();
    all->all_reduce_leaves(self.rank() < 2 ? x : tensor(), sum, uneven).wait();
    all->gather(x, gathered, 0).wait();
    if (self.rank() == 0) all->send(x, 1).wait();
    if (self.rank() == 1) all->receive(x, 0).wait();
    auto count = [&](collective_kind kind, const std::string& algorithm) {
      return options.profile->lines()[{"all", kind, algorithm}].count;
    };
    expect(count(collective_kind::all_reduce, "hierarchy") == 2,
           "all_reduce, of nodes too, by the hierarchy");
    expect(count(collective_kind::all_reduce, "network") == 1, "leaves in unequal numbers over the network");
    expect(count(collective_kind::gather, "network") == 1, "gather over the network");
    if (self.rank() == 0) expect(count(collective_kind::send, "memory") == 1, "send in memory");
    self.barrier(1);
  };
  spawn_ranks(3, body);
}

TEST_CASE("each byte is sent between two hosts once: every chunk has one owner on each host") {
  for (const auto& hosts : placements) {
    hierarchy::host_topology topology(hosts);
    std::vector<int> all_hosts(static_cast<std::size_t>(topology.num_hosts()));
    std::iota(all_hosts.begin(), all_hosts.end(), 0);
    auto owned = hierarchy::ranges_by_host(topology, all_hosts, 10007, 4);
    hierarchy::chunk_plan plan(topology, owned, {.element_bytes = 4, .max_bytes = 1000});
    std::vector<int> num_owners(10007);
    std::vector<std::vector<std::int64_t>> sent(hosts.size());
    for (int member = 0; member < topology.num_members(); ++member)
      for (const auto& each : plan.chunks_of(member)) {
        CHECK(each.elements.count * 4 <= 1000);
        REQUIRE(static_cast<int>(each.partners.size()) == topology.num_hosts());
        CHECK(each.partners[static_cast<std::size_t>(topology.host_of(member))] == member);
        for (int host = 0; host < topology.num_hosts(); ++host)
          CHECK(topology.host_of(each.partners[static_cast<std::size_t>(host)]) == host);
        for (std::int64_t i = 0; i < each.elements.count; ++i)
          ++num_owners[static_cast<std::size_t>(each.elements.first + i)];
        for (int partner : each.partners)
          if (partner != member) sent[static_cast<std::size_t>(partner)].push_back(each.elements.count);
      }
    CHECK(std::ranges::all_of(num_owners, [](int times) { return times == 1; }));
    CHECK(std::ranges::none_of(sent, [](const auto& each) { return each.empty(); }));
  }
}

TEST_CASE(
    "members of mixed hosts survive the loss of one, make a new group and get right bytes: seeds 0 to 4",
    "[many]") {
  try_fault_cases(0, 5, on_hosts_of_two);
}
TEST_CASE(
    "members of mixed hosts survive the loss of one, make a new group and get right bytes: seeds 5 to 99",
    "[.soak]") {
  try_fault_cases(5, 100, on_hosts_of_two);
}
TEST_CASE("late writes of a stopped member of mixed hosts reach no tensor of another member: seed 0") {
  try_large_sums_with_stopped_member(0, 1, on_hosts_of_two);
}
TEST_CASE("late writes of a stopped member of mixed hosts reach no tensor of another member: seeds 1 to 5",
          "[.soak]") {
  try_large_sums_with_stopped_member(1, 6, on_hosts_of_two);
}
