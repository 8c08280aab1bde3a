#include "troupe/gradients/factored_gradient.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/gradients/orthonormalize_columns.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/ops/matmul.hpp"

using namespace troupe;
using namespace troupe::gradients;
using namespace troupe::testing;

namespace {

const low_rank_factors w_factors{20, 30, 2};

tensor as_list(const tensor& matrix) { return matrix.clone().reshape({matrix.num_elements()}); }

float farthest_apart(const tensor& a, const tensor& b) {
  float largest = 0;
  auto x = a.values<float>(), y = b.values<float>();
  REQUIRE(x.size() == y.size());
  for (std::size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::abs(x[i] - y[i]));
  return largest;
}

/// The sum in two uneven parts, as an exchange gives it.
std::vector<tensor> in_parts(const tensor& list) {
  auto count = list.num_elements() / 3;
  return {list.rows(0, count), list.rows(count, list.num_elements() - count)};
}

/// One step of several replicas; an undefined gradient: the replica has none. All get the same result.
tensor exchanged_step(std::vector<factored_gradient>& replicas, const std::vector<tensor>& gradients) {
  tensor first, second, result;
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    CHECK_FALSE(replicas[i].has_first_sum());
    auto own = replicas[i].first_factor(gradients[i].defined() ? as_list(gradients[i]) : tensor());
    first = first.defined() ? add(first, own) : own;
  }
  for (auto& each : replicas) {
    each.take_first_sum(in_parts(first));
    auto own = each.second_factor();
    second = second.defined() ? add(second, own) : own;
  }
  for (auto& each : replicas) {
    auto sum = each.finish(in_parts(second));
    if (result.defined()) CHECK(same_bits(sum, result));
    result = sum;
    CHECK(same_bits(each.q(), replicas.front().q()));
  }
  return result;
}

std::vector<factored_gradient> replicas_of(int count) {
  std::vector<factored_gradient> made;
  for (int i = 0; i < count; ++i) made.emplace_back(w_factors, "w");  // tensors are handles: no copies
  return made;
}

}  // namespace

TEST_CASE("a matrix has factors if they are small enough, of at most its own rank") {
  CHECK(factors_of({100, 60}, 4, 2).rank == 4);
  CHECK(factors_of({3, 16, 10}, 4, 1).rank == 0);  // 163 * 3 elements are more than 480
  CHECK(factors_of({3, 16, 10}, 2, 1).columns == 160);
  CHECK(factors_of({100, 60}, 20, 2).rank == 0);
  CHECK(factors_of({6000}, 1, 2).rank == 0);
  CHECK(factors_of({0, 60}, 1, 2).rank == 0);
}

TEST_CASE("a step of one replica is the power iteration of the paper") {
  auto one = replicas_of(1);
  auto residual = tensor::zeros({20, 30});
  auto q = one[0].q().clone();
  for (int number = 0; number < 3; ++number) {
    auto gradient = random_tensor({20, 30}, std::to_string(number));
    auto sum = exchanged_step(one, {gradient});
    auto m = add(gradient, residual);
    auto p = matmul(m, q);
    orthonormalize_columns(p);
    q = matmul(m, p, {.transpose_a = true});
    auto expected = matmul(p, q, {.transpose_b = true});
    residual = subtract(m, expected);
    CHECK(farthest_apart(sum, expected) < 1e-5F);
    CHECK(farthest_apart(one[0].q(), q) < 1e-5F);
    CHECK(farthest_apart(one[0].residual(), residual) < 1e-5F);
  }
}

TEST_CASE("what replicas have sent and what they hold back are together their gradients") {
  auto replicas = replicas_of(3);
  auto sent = tensor::zeros({600}), given = tensor::zeros({20, 30});
  for (int number = 0; number < 5; ++number) {
    std::vector<tensor> gradients;
    for (int replica = 0; replica < 3; ++replica) {
      gradients.push_back(random_tensor({20, 30}, std::to_string(number) + "." + std::to_string(replica)));
      axpy(1, gradients.back(), given);
    }
    axpy(1, exchanged_step(replicas, gradients), sent);
  }
  auto left = tensor::zeros({20, 30});
  for (const auto& each : replicas) axpy(1, each.residual(), left);
  CHECK(farthest_apart(left, tensor::zeros({20, 30})) > 1);
  CHECK(farthest_apart(add(sent.reshape({20, 30}), left), given) < 1e-4F);
}

TEST_CASE("a replica without a gradient adds nothing, and what it holds back waits") {
  auto two = replicas_of(2), one = replicas_of(1);
  auto first = random_tensor({20, 30}, "first");
  CHECK(same_bits(exchanged_step(two, {first, {}}), exchanged_step(one, {first})));
  CHECK(same_bits(two[1].residual(), tensor::zeros({20, 30})));
  exchanged_step(two, {random_tensor({20, 30}, "second"), random_tensor({20, 30}, "third")});
  auto held = two[1].residual().clone();
  exchanged_step(two, {random_tensor({20, 30}, "fourth"), {}});
  CHECK(same_bits(two[1].residual(), held));
  CHECK(same_bits(exchanged_step(two, {{}, {}}), tensor::zeros({600})));
  CHECK(farthest_apart(exchanged_step(two, {first, first}), tensor::zeros({600})) > 0.1F);
}

TEST_CASE("gradients that are not finite give such a sum, and leave factors and residuals as they were") {
  auto two = replicas_of(2);
  exchanged_step(two, {random_tensor({20, 30}, "a"), random_tensor({20, 30}, "b")});
  auto q = two[0].q().clone(), first = two[0].residual().clone(), second = two[1].residual().clone();
  auto broken = random_tensor({20, 30}, "c");
  broken.values<float>()[7] = std::numeric_limits<float>::infinity();
  auto sum = exchanged_step(two, {broken, random_tensor({20, 30}, "d")});
  CHECK(std::ranges::none_of(sum.values<float>(), [](float each) { return std::isfinite(each); }));
  CHECK(same_bits(two[0].q(), q));
  CHECK(same_bits(two[0].residual(), first));
  CHECK(same_bits(two[1].residual(), second));
}

TEST_CASE("an interrupted step of factors leaves nothing behind but its state") {
  auto one = replicas_of(1), other = replicas_of(1);
  auto first = one[0].first_factor(as_list(random_tensor({20, 30}, "lost")));
  one[0].take_first_sum({first});
  one[0].second_factor();
  one[0].discard();
  auto gradient = random_tensor({20, 30}, "kept");
  CHECK(same_bits(exchanged_step(one, {gradient}), exchanged_step(other, {gradient})));
}
