#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <thread>

#include "troupe/collective/shm/local_group.hpp"

using namespace troupe;
using namespace troupe::collective;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

#define CHECK_REFUSED(call, text) \
  CHECK_THROWS_MATCHES(call, std::invalid_argument, MessageMatches(ContainsSubstring(text)))

TEST_CASE("a reduction of leaves refuses arguments that do not fit its logical-rank map") {
  auto group = make_local_group(2);
  logical_rank_map map({{0, 2}, {}, {1}}), two({{0, 2, 3}, {1}}), idle({{}, {0}});
  auto nodes = tensor::zeros({2, 4}), result = tensor::zeros({4});
  auto halves = tensor::wrap(nullptr, nodes.bytes().data(), {4}, dtype::bf16);
  auto& member = *group[0];
  CHECK_REFUSED(member.all_reduce_leaves(nodes, result, map),
                "[all_reduce_leaves] expected a logical-rank map of 2 members, got leaves {0, 2}, {}, {1} on "
                "3 members");
  CHECK_REFUSED(member.all_reduce_leaves(nodes, result, two, reduce_op::max),
                "expected sum or mean, got max");
  CHECK_REFUSED(member.all_reduce_leaves(nodes, tensor::zeros({4}, dtype::i32), two), "got i32[4]");
  CHECK_REFUSED(member.all_reduce_leaves(nodes, {}, two), "f32, bf16 or f16 as result, got undefined");
  CHECK_REFUSED(member.all_reduce_leaves(result, result, two), "nodes of 8 elements of f32, got f32[4]");
  CHECK_REFUSED(member.all_reduce_leaves({}, result, two), "a tensor as nodes, got an undefined one");
  CHECK_REFUSED(member.all_reduce_leaves(result, result, idle), "no nodes on a member without leaves");
  CHECK_REFUSED(member.all_reduce_leaves(nodes, nodes.rows(1, 1), two), "overlap elsewhere");
  CHECK_REFUSED(member.all_reduce_leaves(nodes, halves, two), "overlap elsewhere");
}

TEST_CASE("threads whose logical-rank maps differ are told both calls") {
  std::array maps{logical_rank_map({{0, 1}, {2}}), logical_rank_map({{0, 2}, {1}})};
  for (std::int64_t size : {8, 100000}) {
    auto group = make_local_group(2);
    std::array<std::string, 2> told;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {
        auto result = tensor::zeros({size});
        auto num_nodes = static_cast<std::int64_t>(maps[i].nodes_of(static_cast<int>(i)).size());
        try {
          group[i]->all_reduce_leaves(tensor::zeros({num_nodes, size}), result, maps[i]).wait();
        } catch (const collective_error& error) {
          told[i] = error.what();
        }
      });
    for (auto& each : threads) each.join();
    for (const auto& text : told)
      for (const auto& map : maps)
        CHECK_THAT(text, ContainsSubstring("all_reduce(sum, f32[" + std::to_string(size) + "] of " +
                                           text_of_logical_ranks(map.signature()) + ')'));
  }
}

TEST_CASE("a reduction of leaves is a handle that ends when all members have called") {
  auto group = make_local_group(2);
  logical_rank_map map({{0, 1, 2}, {3}});
  auto three = tensor::full({2, 1000}, 1), one = tensor::full({1, 1000}, 1), sum = tensor::empty({1000}),
       other = tensor::empty({1000});
  auto first = group[0]->all_reduce_leaves(three, sum, map);
  CHECK_FALSE(first.is_done());
  auto second = group[1]->all_reduce_leaves(one, other, map);
  first.wait();
  second.wait();
  CHECK(std::as_const(sum).values<float>()[999] == 3);
  CHECK(std::as_const(other).values<float>()[0] == 3);
}
