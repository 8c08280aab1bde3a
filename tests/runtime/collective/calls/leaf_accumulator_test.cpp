#include "troupe/collective/calls/leaf_accumulator.hpp"

#include <algorithm>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "support/random_tensor.hpp"
#include "support/rounded.hpp"
#include "troupe/ops/convert.hpp"

using namespace troupe;
using namespace troupe::collective;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using troupe::testing::random_tensor;
using troupe::testing::rounded;

#define CHECK_REFUSED(call, text) \
  CHECK_THROWS_MATCHES(call, std::invalid_argument, MessageMatches(ContainsSubstring(text)))

namespace {

constexpr std::int64_t size = 517;

tensor gradient_of(int leaf, dtype type = dtype::f32) {
  return rounded(random_tensor({size}, "leaf " + std::to_string(leaf)), type);
}

/// The sum of a node's leaves, in f32.
tensor node_sum(const tree_node& node, dtype type) {
  std::vector<tensor> leaves;
  std::vector<const std::byte*> inputs;
  for (int i = 0; i < node.count; ++i) {
    // Widened beforehand, so that a single leaf is f32 too.
    leaves.push_back(cast(gradient_of(node.first + i, type), dtype::f32));
    inputs.push_back(std::as_const(leaves.back()).bytes().data());
  }
  auto sum = tensor::empty({size});
  reduce_node(inputs, sum.bytes().data(), size, dtype::f32, reduce_op::sum);
  return sum;
}

bool same_bits(const tensor& a, const tensor& b) { return std::ranges::equal(a.bytes(), b.bytes()); }

std::vector<int> consecutive(int first, int count) {
  std::vector<int> leaves(static_cast<std::size_t>(count));
  std::iota(leaves.begin(), leaves.end(), first);
  return leaves;
}

/// The most partial sums while the member's leaves are added.
int most_partial_sums(const logical_rank_map& map, int member) {
  leaf_accumulator sums(map, member, size);
  int most = 0;
  for (int leaf : map.leaves_of(member)) {
    sums.add(leaf, gradient_of(leaf));
    most = std::max(most, sums.num_partial_sums());
  }
  return most;
}

}  // namespace

TEST_CASE("leaves are added up to the bits of the member's nodes") {
  for (const auto& lists : std::vector<std::vector<std::vector<int>>>{{{0}},
                                                                      {{0, 1, 2, 3, 4, 5, 6, 7}},
                                                                      {{0, 1}, {2}, {3}},
                                                                      {{1, 2, 3, 4, 5}, {0, 6}},
                                                                      {{0, 1, 2, 3, 4, 5, 6}},
                                                                      {{0, 3}, {}, {1, 2, 4}}}) {
    logical_rank_map map(lists);
    for (auto type : {dtype::f32, dtype::bf16, dtype::f16})
      for (int member = 0; member < map.num_members(); ++member) {
        leaf_accumulator sums(map, member, size);
        for (int leaf : map.leaves_of(member)) sums.add(leaf, gradient_of(leaf, type));
        auto nodes = map.nodes_of(member);
        REQUIRE(sums.is_complete());
        CHECK(sums.nodes().defined() == !nodes.empty());
        for (std::size_t i = 0; i < nodes.size(); ++i) {
          INFO(to_string(type) << ", node " << i << " of member " << member << ", " << map.text());
          CHECK(same_bits(sums.nodes().rows(static_cast<std::int64_t>(i), 1), node_sum(nodes[i], type)));
        }
      }
  }
}

TEST_CASE("k consecutive and aligned leaves need at most 1 + log2(k) partial sums") {
  for (int k : {1, 2, 4, 8, 16, 32}) {
    int log2 = std::countr_zero(static_cast<unsigned>(k));
    logical_rank_map map({consecutive(0, k), consecutive(k, k)});
    for (int member : {0, 1}) CHECK(most_partial_sums(map, member) <= 1 + log2);
  }
}

TEST_CASE("other leaves need one sum for each node more") {
  CHECK(most_partial_sums(logical_rank_map({{0, 2, 4, 6}, {1, 3, 5, 7}}), 0) == 4);
  CHECK(most_partial_sums(logical_rank_map({{1, 2, 3, 4, 5}, {0, 6, 7}}), 0) == 3);
  // (0 1)(2 3) is complete when 4 and 5 come.
  CHECK(most_partial_sums(logical_rank_map({{0, 1, 2, 3, 4, 5}, {6, 7}}), 0) == 2);
}

TEST_CASE("leaves that were computed in their places have the same bits") {
  for (const auto& lists : std::vector<std::vector<std::vector<int>>>{{{0, 1, 2, 3, 4, 5, 6, 7}},
                                                                      {{1, 2, 3, 4, 5}, {0, 6}},
                                                                      {{0, 1, 2, 3, 4, 5, 6}},
                                                                      {{0, 3}, {1, 2, 4}}}) {
    logical_rank_map map(lists);
    leaf_accumulator sums(map, 0, size);
    for (int step = 0; step < 2; ++step) {
      for (std::size_t i = 0; i < lists[0].size(); ++i) {
        auto place = sums.place_of(i);
        place.copy_from(gradient_of(lists[0][i]));
        sums.add(lists[0][i], place);
      }
      auto nodes = map.nodes_of(0);
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        INFO("node " << i << " of " << map.text() << " in step " << step);
        CHECK(same_bits(sums.nodes().rows(static_cast<std::int64_t>(i), 1), node_sum(nodes[i], dtype::f32)));
      }
      sums.restart();
    }
  }
}

TEST_CASE("a leaf that comes twice, too early or beside the member's is refused and changes nothing") {
  logical_rank_map map({{0, 1, 4}, {2, 3}});
  leaf_accumulator sums(map, 0, size);
  CHECK_REFUSED(sums.add(1, gradient_of(1)), "[leaf_accumulator::add] expected leaf 0 next, got leaf 1");
  sums.add(0, gradient_of(0));
  CHECK_REFUSED(sums.add(0, gradient_of(0)), "expected leaf 1 next, got leaf 0, which has been added");
  sums.add(1, gradient_of(1));
  CHECK_REFUSED(sums.add(2, gradient_of(2)), "expected leaf 4 next, got leaf 2");
  CHECK_THROWS_MATCHES(sums.nodes(), std::logic_error, MessageMatches(ContainsSubstring("leaf 4 is next")));
  sums.add(4, gradient_of(4));
  CHECK_REFUSED(sums.add(4, gradient_of(4)),
                "no leaf after the member's 3, got leaf 4, which has been added");
  CHECK(same_bits(sums.nodes().rows(0, 1), node_sum({0, 2}, dtype::f32)));
  CHECK(same_bits(sums.nodes().rows(1, 1), node_sum({4, 1}, dtype::f32)));
}

TEST_CASE("gradients that do not fit are refused") {
  logical_rank_map map(std::vector<std::vector<int>>{{0}});
  leaf_accumulator sums(map, 0, 4);
  CHECK_REFUSED(sums.add(0, tensor::zeros({5})), "4 elements of f32, bf16 or f16 on the CPU, got f32[5]");
  CHECK_REFUSED(sums.add(0, tensor::zeros({4}, dtype::i32)), "got i32[4]");
  CHECK_REFUSED(sums.add(0, {}), "got undefined");
  CHECK_NOTHROW(sums.add(0, tensor::zeros({2, 2})));
}

TEST_CASE("an accumulator keeps its nodes in the memory that it is given, and is used again") {
  logical_rank_map map({{0, 1, 2}, {3}});
  auto memory = tensor::full({2 * size}, 7);
  leaf_accumulator sums(map, 0, size, memory);
  for (int step = 0; step < 2; ++step) {
    for (int leaf : {0, 1, 2}) sums.add(leaf, gradient_of(leaf + step));
    CHECK(sums.nodes().bytes().data() == std::as_const(memory).bytes().data());
    CHECK(sums.nodes().shape() == shape{2, size});
    CHECK(same_bits(sums.nodes().rows(0, 1), node_sum({step, 2}, dtype::f32)));
    CHECK(same_bits(sums.nodes().rows(1, 1), gradient_of(2 + step)));
    sums.restart();
    CHECK(sums.num_partial_sums() == 0);
  }
  CHECK_REFUSED(leaf_accumulator(map, 0, size, tensor::zeros({size})),
                "expected f32[2, 517] for the member's nodes, got f32[517]");
  CHECK_REFUSED(leaf_accumulator(map, 0, -1), "num_elements >= 0, got -1");
}
