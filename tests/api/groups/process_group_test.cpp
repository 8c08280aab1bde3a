// Groups of one process; those of many are in tests/jobs/groups_test.cpp.
#include "troupe/process_group.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <numeric>
#include <thread>

#include "troupe/collective/shm/local_group.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/world.hpp"

using namespace troupe;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

using ranks = std::vector<world_rank>;

float first_of(const tensor& x) { return x.values<float>()[0]; }

/// One thread for each group; what they throw comes out.
template <class Body>
void on_threads(const std::vector<ProcessGroup>& groups, Body body) {
  std::vector<std::exception_ptr> thrown(groups.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < groups.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        body(groups[i]);
      } catch (...) {
        thrown[i] = std::current_exception();
        groups[i].abort("a test's thread failed");
      }
    });
  for (auto& each : threads) each.join();
  for (const auto& each : thrown)
    if (each) std::rethrow_exception(each);
}

void expect(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

/// Ends of a group with ranks 7, 3 and 5.
std::vector<ProcessGroup> odd_group() {
  std::vector<ProcessGroup> groups;
  for (auto& each : collective::make_local_group({7, 3, 5}, {}, "odd"))
    groups.emplace_back(std::shared_ptr<communicator>(std::move(each)));
  return groups;
}

}  // namespace

TEST_CASE("roots and peers of a process group are ranks of the world") {
  auto groups = odd_group();
  CHECK(groups[1].rank() == 1);
  CHECK(groups[1].ranks() == ranks{7, 3, 5});
  CHECK(groups[1].contains(5));
  CHECK(!groups[1].contains(1));
  on_threads(groups, [](const ProcessGroup& group) {
    auto self = static_cast<float>(group.ranks()[static_cast<std::size_t>(group.rank())]);
    auto x = tensor::full({2}, self);
    group.broadcast(x, 3).wait();
    expect(first_of(x) == 3, "the tensor of rank 3");
    auto sum = tensor::zeros({2});
    group.reduce(tensor::full({2}, self), group.rank() == 2 ? sum : tensor(), 5).wait();
    if (group.rank() == 2) expect(first_of(sum) == 15, "the sum at rank 5");
    auto all = tensor::zeros({3});
    group.gather(tensor::full({1}, self), group.rank() == 0 ? all : tensor(), 7).wait();
    if (group.rank() == 0)
      expect(all.values<float>()[1] == 3 && all.values<float>()[2] == 5, "the parts in order of the ranks");
    auto part = tensor::zeros({1});
    group.scatter(all, part, 7).wait();
    expect(first_of(part) == self, "what was gathered to come back");
    if (self == 3) group.send(tensor::full({1}, 8.0F), 5).wait();
    if (self == 5) {
      group.receive(part, 3).wait();
      expect(first_of(part) == 8, "what rank 3 sent");
    }
  });
}

TEST_CASE("every collective reaches the communicator") {
  auto world = World::local(4);
  on_threads(world.local_groups(), [](const ProcessGroup& group) {
    auto self = static_cast<float>(group.rank());
    auto x = group.allocate({4});
    for (std::size_t i = 0; i < 4; ++i) x.values<float>()[i] = self;
    auto parts = tensor::zeros({1});
    group.reduce_scatter(x, parts).wait();
    expect(first_of(parts) == 6, "a part of the sum");
    auto all = tensor::zeros({4});
    group.all_gather(tensor::full({1}, self), all).wait();
    expect(all.values<float>()[3] == 3, "the last one's part");
    group.all_to_all(x, all).wait();
    expect(all.values<float>()[2] == 2, "rank 2's part for this one");
    group.all_reduce(x, reduce_op::max).wait();
    expect(first_of(x) == 3, "the greatest");
    auto unequal = tensor::zeros({6});
    group.all_gather(tensor::full({group.rank()}, self), unequal, {0, 1, 2, 3}).wait();
    expect(unequal.values<float>()[5] == 3, "the longest part last");
    auto own = tensor::zeros({group.rank()});
    group.reduce_scatter(tensor::full({6}, 1.0F), own, {0, 1, 2, 3}).wait();
    expect(group.rank() == 0 || first_of(own) == 4, "an unequal part of the sum");
    group.all_reduce(tensor::full({2}, 1.0F), tensor::zeros({2}), reduce_op::sum).wait();
    group.barrier().wait();
    expect(group.recent_calls().find("barrier") != std::string::npos, "the calls to be known");
  });
}

TEST_CASE("a rank outside a group is refused by its number") {
  auto groups = odd_group();
  CHECK_THROWS_MATCHES(groups[0].broadcast(tensor::zeros({1}), 1), std::invalid_argument,
                       MessageMatches(ContainsSubstring("a rank of group odd, got 1")));
  CHECK_THROWS_AS(groups[0].send(tensor::zeros({1}), 0), std::invalid_argument);
}

TEST_CASE("a process outside a group can only query its members") {
  auto others = ProcessGroup::non_member({0, 2});
  CHECK(others.rank() == -1);
  CHECK(others.size() == 2);
  CHECK(others.contains(2));
  CHECK(!others.contains(1));
  CHECK_THROWS_MATCHES(others.barrier(), std::logic_error, MessageMatches(ContainsSubstring("{0,2}")));
  CHECK_THROWS_AS(others.name(), std::logic_error);
}

TEST_CASE("a world of one process has groups of one, also of many devices") {
  auto world = World::local(2);
  auto all = world.default_group();
  CHECK(all.ranks() == ranks{0});
  CHECK(all.name() == "default");
  auto x = tensor::full({3}, 2.0F);
  all.all_reduce(x).wait();
  CHECK(first_of(x) == 2);
  CHECK(world.new_group({0}).size() == 1);
  auto mesh = world.mesh({{"dp", 1}, {"tp", 1}});
  CHECK(mesh["tp"].ranks() == ranks{0});
  CHECK(mesh.slice({"dp", "tp"}).ranks() == ranks{0});
  CHECK(mesh.coordinate("dp") == 0);
  CHECK_THROWS_AS(mesh["pp"], std::invalid_argument);
  CHECK_THROWS_AS(world.mesh({{"dp", 2}}), std::invalid_argument);
}

TEST_CASE("invalid rank lists are refused") {
  auto world = World::local(1);
  auto refused = [&](const ranks& of, const char* text) {
    CHECK_THROWS_MATCHES(world.new_group(of), std::invalid_argument, MessageMatches(ContainsSubstring(text)));
  };
  refused({}, "at least one rank");
  refused({1}, "ranks in [0, 1), got 1");
  refused({0, 0}, "0 twice");
  refused({-1}, "got -1");
}

TEST_CASE("a failed default group is formed again, and so are the groups of a mesh") {
  auto world = World::local(1);
  auto mesh = world.mesh({{"dp", 1}});
  auto all = world.default_group(), slice = mesh["dp"];
  CHECK(!all.has_failed());
  CHECK(world.default_group().name() == "default");
  all.abort("enough");
  slice.abort("enough");
  CHECK(all.has_failed());
  CHECK_THROWS_AS(all.barrier().wait(), collective_error);
  CHECK(world.default_group().name() == "default#2");
  CHECK(mesh["dp"].name() == "{0}#2");
  world.default_group().barrier().wait();
  mesh["dp"].barrier().wait();
}

TEST_CASE("a call in flight keeps its group and its world") {
  std::vector<work> calls;
  {
    auto world = World::local(2);
    auto groups = world.local_groups();
    for (const auto& group : groups) calls.push_back(group.barrier());
  }
  for (auto& each : calls) each.wait();
  CHECK(calls[0].is_done());
}
