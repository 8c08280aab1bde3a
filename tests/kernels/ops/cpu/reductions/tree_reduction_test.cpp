#include "troupe/ops/tree_reduction.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "support/random_tensor.hpp"
#include "support/rounded.hpp"

using namespace troupe;
using troupe::testing::random_tensor;
using troupe::testing::rounded;

namespace {

tensor reduced(const std::vector<tensor>& inputs, reduce_op op, store_kind store = store_kind::cached) {
  std::vector<const std::byte*> places;
  for (const auto& each : inputs) places.push_back(each.bytes().data());
  auto result = tensor::empty(inputs[0].shape(), inputs[0].dtype());
  std::byte* place = result.bytes().data();
  tree_reduce(places, {&place, 1}, result.num_elements(), result.dtype(), op, store);
  return result;
}

std::vector<tensor> random_inputs(int count, std::int64_t size, dtype type) {
  std::vector<tensor> inputs;
  for (int i = 0; i < count; ++i)
    inputs.push_back(rounded(random_tensor({size}, "input " + std::to_string(i)), type));
  return inputs;
}

double value(const tensor& x, std::size_t i) {
  if (x.dtype() == dtype::bf16) return static_cast<double>(static_cast<float>(x.values<bfloat16>()[i]));
  if (x.dtype() == dtype::f16) return static_cast<double>(static_cast<float>(x.values<float16>()[i]));
  return static_cast<double>(x.values<float>()[i]);
}

double in_double(const std::vector<tensor>& inputs, std::size_t i, reduce_op op) {
  double result = value(inputs[0], i);
  for (std::size_t k = 1; k < inputs.size(); ++k) {
    auto next = value(inputs[k], i);
    if (op == reduce_op::sum || op == reduce_op::mean) result += next;
    if (op == reduce_op::product) result *= next;
    if (op == reduce_op::max) result = std::max(result, next);
    if (op == reduce_op::min) result = std::min(result, next);
  }
  return op == reduce_op::mean ? result / static_cast<double>(inputs.size()) : result;
}

/// Half a unit in the last place of a number near `of`.
double rounding(dtype type, double of) {
  int bits = type == dtype::f32 ? 24 : type == dtype::bf16 ? 8 : 11;
  return std::ldexp(std::max(std::abs(of), 1e-4), -bits);
}

}  // namespace

TEST_CASE("a tree reduction of floats is close to the same reduction of doubles") {
  for (auto type : {dtype::f32, dtype::bf16, dtype::f16})
    for (auto op : {reduce_op::sum, reduce_op::mean, reduce_op::product, reduce_op::max, reduce_op::min})
      for (int count : {1, 2, 3, 7, 8, 13}) {
        auto inputs = random_inputs(count, 1031, type);
        auto result = reduced(inputs, op);
        double worst = 0;
        for (std::size_t i = 0; i < 1031; ++i) {
          auto wanted = in_double(inputs, i, op);
          // Each of at most count additions of numbers up to count may round in f32, and once in the dtype.
          auto allowed = rounding(type, wanted) + count * rounding(dtype::f32, count);
          worst = std::max(worst, std::abs(value(result, i) - wanted) / allowed);
        }
        INFO(to_string(type) << ' ' << to_string(op) << " of " << count);
        CHECK(worst <= 1);
      }
}

TEST_CASE("the tree splits at the largest power of two: five are (0 1)(2 3) and 4") {
  auto x = random_inputs(5, 100, dtype::f32);
  auto result = reduced(x, reduce_op::sum);
  for (std::size_t i = 0; i < 100; ++i) {
    auto at = [&](std::size_t k) { return x[k].values<float>()[i]; };
    float left = (at(0) + at(1)) + (at(2) + at(3));
    CHECK(result.values<float>()[i] == left + at(4));
  }
}

TEST_CASE("a member may reduce an aligned block of leaves beforehand") {
  auto x = random_inputs(8, 3000, dtype::f32);
  auto whole = reduced(x, reduce_op::sum);
  auto left = reduced({x[0], x[1], x[2], x[3]}, reduce_op::sum);
  auto right = reduced({x[4], x[5], x[6], x[7]}, reduce_op::sum);
  auto both = reduced({left, right}, reduce_op::sum);
  CHECK(std::ranges::equal(std::as_const(whole).bytes(), std::as_const(both).bytes()));
}

TEST_CASE("a host reduces the largest nodes of the tree whose members it has") {
  using nodes = std::vector<tree_node>;
  CHECK(nodes_within(std::vector{0, 1}, 4) == nodes{{0, 2}});
  CHECK(nodes_within(std::vector{1, 2, 3}, 4) == nodes{{1, 1}, {2, 2}});
  CHECK(nodes_within(std::vector{3, 4}, 5) == nodes{{3, 1}, {4, 1}});
  CHECK(nodes_within(std::vector{4, 5}, 6) == nodes{{4, 2}});
  CHECK(nodes_within(std::vector{0, 2, 4}, 6) == nodes{{0, 1}, {2, 1}, {4, 1}});
  CHECK(nodes_within(std::vector{0, 1, 2}, 3) == nodes{{0, 3}});
}

TEST_CASE("nodes reduced by the hosts give the bits of the whole tree, for any placement of members") {
  std::vector<std::vector<std::vector<int>>> placements{{{0, 1}, {2, 3}},
                                                        {{0}, {1, 2, 3}},
                                                        {{0, 1}, {2}, {3, 4}},
                                                        {{0, 2}, {1, 3}},
                                                        {{0, 1, 2, 3}, {4, 5}, {6, 7, 8}}};
  for (auto type : {dtype::f32, dtype::bf16, dtype::f16, dtype::i32})
    for (auto op : {reduce_op::sum, reduce_op::mean, reduce_op::product, reduce_op::max})
      for (const auto& hosts : placements) {
        int n = 0;
        for (const auto& host : hosts) n += static_cast<int>(host.size());
        auto x = random_inputs(n, 1031, type);
        std::vector<std::pair<tree_node, tensor>> nodes;
        for (const auto& host : hosts)
          for (const auto& node : nodes_within(host, n)) {
            std::vector<const std::byte*> inputs;
            for (int i = 0; i < node.count; ++i)
              inputs.push_back(std::as_const(x[static_cast<std::size_t>(node.first + i)]).bytes().data());
            nodes.emplace_back(node, tensor::empty({1031}, node_type(node, type)));
            reduce_node(inputs, nodes.back().second.bytes().data(), 1031, type, op);
          }
        std::ranges::sort(nodes, {}, [](const auto& each) { return each.first.first; });
        std::vector<node_elements> inputs;
        for (const auto& [node, elements] : nodes) inputs.push_back({elements.bytes().data(), node.count});
        const auto expected = reduced(x, op);
        auto result = tensor::empty({1031}, type);
        std::byte* place = result.bytes().data();
        tree_reduce(inputs, {&place, 1}, 1031, type, op);
        INFO(to_string(type) << ' ' << to_string(op) << " of " << n << " on " << hosts.size());
        CHECK(std::ranges::equal(std::as_const(result).bytes(), expected.bytes()));
      }
}

TEST_CASE("the bits do not depend on the kind of stores, on alignment, or on where a part begins") {
  for (auto type : {dtype::f32, dtype::bf16, dtype::f16}) {
    auto x = random_inputs(3, 5001, type);
    auto wanted = reduced(x, reduce_op::sum);
    auto streamed = reduced(x, reduce_op::sum, store_kind::streaming);
    CHECK(std::ranges::equal(std::as_const(wanted).bytes(), std::as_const(streamed).bytes()));
    auto size = size_bytes(type);
    for (std::size_t first : {1U, 7U, 1023U, 4000U}) {
      std::vector<std::vector<std::byte>> shifted;  // one byte off every alignment
      std::vector<const std::byte*> places;
      for (auto& each : x) {
        auto part = std::as_const(each).bytes().subspan(first * size);
        shifted.emplace_back(part.size() + 1);
        std::ranges::copy(part, shifted.back().begin() + 1);
        places.push_back(shifted.back().data() + 1);
      }
      std::vector<std::byte> result(shifted[0].size());
      std::byte* place = result.data() + 1;
      tree_reduce(places, {&place, 1}, static_cast<std::int64_t>(5001 - first), type, reduce_op::sum);
      auto part = std::as_const(wanted).bytes().subspan(first * size);
      CHECK(std::memcmp(place, part.data(), part.size()) == 0);
    }
  }
}

TEST_CASE("results go to every output, one of which may be an input") {
  auto x = random_inputs(3, 2049, dtype::f32);
  auto wanted = reduced(x, reduce_op::mean);
  auto other = tensor::empty({2049});
  std::vector<const std::byte*> inputs{x[0].bytes().data(), x[1].bytes().data(), x[2].bytes().data()};
  std::vector<std::byte*> outputs{x[1].bytes().data(), other.bytes().data()};
  tree_reduce(inputs, outputs, 2049, dtype::f32, reduce_op::mean);
  CHECK(std::ranges::equal(std::as_const(x[1]).bytes(), std::as_const(wanted).bytes()));
  CHECK(std::ranges::equal(std::as_const(other).bytes(), std::as_const(wanted).bytes()));
}

TEST_CASE("integers wrap around, and their mean is taken toward zero") {
  auto most = std::numeric_limits<std::int32_t>::max();
  auto a = tensor::from(std::vector<std::int32_t>{most, -4, 7}, {3});
  auto b = tensor::from(std::vector<std::int32_t>{1, -3, 6}, {3});
  CHECK(reduced({a, b}, reduce_op::sum).values<std::int32_t>()[0] ==
        std::numeric_limits<std::int32_t>::min());
  auto mean = reduced({a, b}, reduce_op::mean);
  CHECK(mean.values<std::int32_t>()[1] == -3);
  CHECK(mean.values<std::int32_t>()[2] == 6);
  auto bytes = tensor::from(std::vector<std::uint8_t>{200, 255}, {2});
  auto product = reduced({bytes, bytes, bytes}, reduce_op::product);
  CHECK(product.values<std::uint8_t>()[0] == static_cast<std::uint8_t>(200 * 200 * 200));
  CHECK(product.values<std::uint8_t>()[1] == 255);
  auto large = tensor::from(std::vector<std::int64_t>{std::int64_t{1} << 62}, {1});
  CHECK(reduced({large, large}, reduce_op::sum).values<std::int64_t>()[0] ==
        std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("max and min are NaN if any member's element is NaN") {
  auto nan = std::numeric_limits<float>::quiet_NaN();
  for (int who : {0, 1, 2})
    for (auto op : {reduce_op::max, reduce_op::min}) {
      std::vector<tensor> x;
      for (int i = 0; i < 3; ++i) x.push_back(tensor::full({5}, i == who ? nan : static_cast<float>(i)));
      auto result = reduced(x, op);
      CHECK(std::isnan(std::as_const(result).values<float>()[3]));
    }
}

TEST_CASE("bf16 is rounded once, at the root") {
  // In bf16 256 + 1 is 256 again: rounding at every node would lose all ones.
  std::vector<tensor> x{rounded(tensor::full({3}, 256), dtype::bf16)};
  for (int i = 0; i < 7; ++i) x.push_back(rounded(tensor::full({3}, 1), dtype::bf16));
  CHECK(value(reduced(x, reduce_op::sum), 0) == 264);  // 263 to the nearest of 262 and 264, ties to even
}

TEST_CASE("leaves that were widened beforehand give the bits of those that were not") {
  for (auto type : {dtype::bf16, dtype::f16})
    for (auto op : {reduce_op::sum, reduce_op::mean}) {
      auto x = random_inputs(5, 1031, type);
      std::vector<tensor> widened;
      std::vector<node_elements> inputs;
      for (const auto& each : x) {
        bool is_widened = inputs.size() != 1;
        widened.push_back(is_widened ? tensor::empty({1031}) : each);
        if (is_widened) widen_leaf(each.bytes().data(), widened.back().bytes().data(), 1031, type);
        inputs.push_back({std::as_const(widened.back()).bytes().data(), 1, is_widened});
      }
      auto result = tensor::empty({1031}, type);
      std::byte* place = result.bytes().data();
      tree_reduce(inputs, {&place, 1}, 1031, type, op);
      const auto expected = reduced(x, op);
      CHECK(std::ranges::equal(std::as_const(result).bytes(), expected.bytes()));
    }
}

TEST_CASE("booleans are not reduced, and only leaves of floating dtype are widened") {
  auto x = tensor::zeros({3}, dtype::boolean), numbers = tensor::zeros({3}, dtype::i32),
       to = tensor::zeros({3});
  CHECK_THROWS_AS(widen_leaf(numbers.bytes().data(), to.bytes().data(), 3, dtype::i32),
                  std::invalid_argument);
  CHECK_THROWS_AS(reduced({x, x}, reduce_op::max), std::invalid_argument);
}
