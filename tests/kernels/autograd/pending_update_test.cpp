#include "troupe/autograd/pending_update.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "kernels/autograd/make_parameter.hpp"
#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/autograd/backward_pass.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/parameter.hpp"

using namespace troupe;
using Catch::Matchers::ContainsSubstring;
using troupe::testing::make_parameter;
using troupe::testing::random_tensor;

namespace {

/// Writes threes to a parameter's value when it is waited for.
class writes_threes : public pending_update {
 public:
  explicit writes_threes(parameter& to) : to_(to) { set_pending(true); }
  int num_finished = 0;
  bool fails = false;

 protected:
  void finish() override {
    if (fails) throw std::runtime_error("rank 3 was lost");
    ++num_finished;
    to_.value_in_update().copy_from(tensor::full(to_.extents, 3));
    to_.mark_stepped();
    set_pending(false);
  }

 private:
  parameter& to_;
};

/// What reads its learned arguments in a forward pass, each with a weight of its own.
struct forward_case {
  shape weight;
  std::function<void(parameter& weight)> forward;
};

std::vector<forward_case> forward_cases() {
  auto rows = random_tensor({2, 4}, "rows"), image = random_tensor({2, 4, 3, 3}, "image");
  return {{{3, 4}, [=](parameter& weight) { linear({rows}, weight, nullptr); }},
          {{4}, [=](parameter& weight) { variable{rows} * as_variable(weight); }},
          {{4}, [=](parameter& weight) { rms_norm({rows}, &weight, 1e-5); }},
          {{4}, [=](parameter& weight) { layer_norm({rows}, &weight, nullptr, 1e-5); }},
          {{2, 4, 3, 3}, [=](parameter& weight) { conv2d({image}, weight, nullptr, {}); }},
          {{5, 4}, [](parameter& weight) { embedding(weight, tensor::zeros({2}, dtype::i64)); }}};
}

}  // namespace

TEST_CASE("a parameter is not read while an update is pending, and may be after wait_ready") {
  auto weight = make_parameter("weight", {2, 3});
  auto update = std::make_shared<writes_threes>(weight);
  weight.set_update(update);
  auto refusal = ContainsSubstring("[parameter] expected weight[2, 3] without a pending update");
  CHECK_THROWS_WITH(weight.value(), refusal);
  CHECK_THROWS_WITH(weight.gradient(), refusal);
  CHECK_THROWS_WITH(weight.as(dtype::bf16), refusal);
  CHECK(update->num_finished == 0);
  weight.wait_ready();
  weight.wait_ready();
  CHECK(update->num_finished == 1);
  CHECK(weight.value().values<float>()[5] == 3);
}

TEST_CASE("every function of a forward pass waits once for the update of its parameter") {
  for (const auto& each : forward_cases()) {
    INFO(to_string(each.weight));
    auto weight = make_parameter("weight", each.weight);
    auto update = std::make_shared<writes_threes>(weight);
    weight.set_update(update);
    each.forward(weight);
    CHECK(update->num_finished == 1);
    CHECK_FALSE(update->is_pending());
  }
}

TEST_CASE("a backward pass waits before it writes to a gradient that an update still needs") {
  auto weight = make_parameter("weight", {3, 4});
  auto update = std::make_shared<writes_threes>(weight);
  update->set_pending(false);
  weight.set_update(update);
  weight.has_gradient = true;  // left by the step before, whose update is pending again
  update->set_pending(true);
  CHECK(begin_gradients({&weight}) == gradient_mode::assign);
  CHECK(update->num_finished == 1);
}

TEST_CASE("a copy of a parameter has the elements after the pending update, and no pending update") {
  auto weight = make_parameter("weight", {2});
  weight.set_update(std::make_shared<writes_threes>(weight));
  auto copy = weight;
  CHECK(copy.value().values<float>()[1] == 3);
  CHECK(testing::same_bits(copy.value(), weight.value()));
}

TEST_CASE("an error of a pending update is thrown by the forward pass that waits for it") {
  auto weight = make_parameter("weight", {3, 4});
  auto update = std::make_shared<writes_threes>(weight);
  update->fails = true;
  weight.set_update(update);
  CHECK_THROWS_WITH(linear({random_tensor({2, 4}, "x")}, weight, nullptr), "rank 3 was lost");
  CHECK_THROWS_WITH(weight.wait_ready(), "rank 3 was lost");
}
