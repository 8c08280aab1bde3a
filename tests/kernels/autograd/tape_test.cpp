#include "troupe/autograd/tape.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/ops/linear.hpp"

using troupe::parameter;
using troupe::tape;
using troupe::tensor;
using troupe::variable;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

namespace {

parameter make_parameter(const std::string& name, troupe::shape extents) {
  return {name, random_tensor(extents, name), tensor::zeros(extents)};
}

/// Two layers, with the sum of a layer's input and output between them.
struct model {
  parameter first = make_parameter("first", {6, 5}), first_bias = make_parameter("first_bias", {6}),
            square = make_parameter("square", {6, 6}), last = make_parameter("last", {3, 6});

  variable forward(const variable& x) const {
    auto hidden = relu(linear(x, first, &first_bias));
    return linear(add(hidden, relu(linear(hidden, square, nullptr))), last, nullptr);
  }
  std::vector<tensor> gradients() const {
    return {first.gradient, first_bias.gradient, square.gradient, last.gradient};
  }
};

bool same_gradients(const model& a, const model& b) {
  return std::ranges::equal(a.gradients(), b.gradients(),
                            [](const auto& x, const auto& y) { return same_bits(x, y); });
}

/// Counts how often it is run, and tells when it is destroyed.
class probe : public troupe::operation {
 public:
  struct log {
    int inputs = 0, weights = 0, destroyed = 0;
  };
  probe(log& to, bool has_weights) : log_(to), has_weights_(has_weights) {}
  ~probe() override { ++log_.destroyed; }
  std::vector<tensor> backward_input(tensor dy) override {
    ++log_.inputs;
    return {dy};
  }
  void backward_weight() override { ++log_.weights; }
  bool has_parameters() const override { return has_weights_; }

 private:
  log& log_;
  bool has_weights_;
};

}  // namespace

TEST_CASE("input gradients first and weights later gives the bits of both at once") {
  auto x = random_tensor({4, 5}, "x"), dy = random_tensor({4, 3}, "dy");
  model split, joined;
  tape one, two;
  split.forward(one.start(x, tape::input_gradient::wanted));
  joined.forward(two.start(x, tape::input_gradient::wanted));
  auto dx = one.backward_input(dy);
  CHECK(same_bits(split.first.gradient, tensor::zeros({6, 5})));
  one.backward_weight();
  CHECK(same_bits(dx, two.backward(dy)));
  CHECK(dx.extents() == x.extents());
  CHECK(same_gradients(split, joined));
  CHECK_FALSE(same_bits(split.first.gradient, tensor::zeros({6, 5})));
}

TEST_CASE("without a tape the value is the same and nothing is recorded") {
  auto x = random_tensor({4, 5}, "x");
  model m;
  tape recorder;
  auto plain = m.forward({x});
  CHECK(plain.recorder == nullptr);
  CHECK(same_bits(plain.value, m.forward(recorder.start(x, tape::input_gradient::unwanted)).value));
}

TEST_CASE("an unwanted input gradient is undefined and changes no weight gradient") {
  auto x = random_tensor({4, 5}, "x"), dy = random_tensor({4, 3}, "dy");
  model wanted, unwanted;
  tape one, two;
  wanted.forward(one.start(x, tape::input_gradient::wanted));
  unwanted.forward(two.start(x, tape::input_gradient::unwanted));
  CHECK(one.backward(dy).defined());
  CHECK_FALSE(two.backward(dy).defined());
  CHECK(same_gradients(wanted, unwanted));
}

TEST_CASE("gradients accumulate over passes, in their order") {
  model m;
  auto expected = tensor::zeros({3, 5});
  m.last = make_parameter("direct", {3, 5});
  for (const auto* name : {"a", "b", "c"}) {
    tape recorder;
    auto x = random_tensor({4, 5}, name), dy = random_tensor({4, 3}, name);
    linear(recorder.start(x, tape::input_gradient::unwanted), m.last, nullptr);
    recorder.backward(dy);
    troupe::linear_backward_weight(x, dy, expected, {});
  }
  CHECK(same_bits(m.last.gradient, expected));
}

TEST_CASE("what only the input gradient needs is released before the weights'") {
  probe::log with, without;
  tape recorder;
  auto x = recorder.start(tensor::zeros({1}), tape::input_gradient::wanted);
  auto y = recorder.record(tensor::zeros({1}), {x}, std::make_unique<probe>(with, true));
  recorder.record(tensor::zeros({1}), {y}, std::make_unique<probe>(without, false));
  recorder.backward_input(tensor::zeros({1}));
  CHECK(with.inputs == 1);
  CHECK(without.inputs == 1);
  CHECK(without.destroyed == 1);
  CHECK(with.destroyed == 0);
  recorder.backward_weight();
  CHECK(with.weights == 1);
  CHECK(with.destroyed == 1);
  CHECK(without.weights == 0);
}

TEST_CASE("what leads to no parameter and no wanted input is not run back") {
  probe::log log;
  tape recorder;
  auto x = recorder.start(tensor::zeros({1}), tape::input_gradient::unwanted);
  auto y = recorder.record(tensor::zeros({1}), {x}, std::make_unique<probe>(log, false));
  CHECK_FALSE(recorder.needs_gradient(y));
  CHECK_FALSE(recorder.backward(tensor::zeros({1})).defined());
  CHECK(log.inputs == 0);
  CHECK(log.destroyed == 1);
}

TEST_CASE("a tape that recorded nothing hands the gradient through") {
  tape recorder;
  recorder.start(tensor::zeros({2}), tape::input_gradient::wanted);
  auto dy = random_tensor({2}, "dy");
  CHECK(same_bits(recorder.backward(dy), dy));
}

TEST_CASE("calls out of order are refused, and a reset tape is as new") {
  tape recorder, other;
  CHECK_THROWS_AS(recorder.backward_input({}), std::logic_error);
  CHECK_THROWS_AS(recorder.backward_weight(), std::logic_error);
  auto x = recorder.start(tensor::zeros({1}), tape::input_gradient::wanted);
  CHECK_THROWS_AS(recorder.start(tensor::zeros({1}), tape::input_gradient::wanted), std::logic_error);
  CHECK_THROWS_AS(recorder.backward_weight(), std::logic_error);
  recorder.backward_input(tensor::zeros({1}));
  CHECK_THROWS_AS(recorder.backward_input(tensor::zeros({1})), std::logic_error);
  CHECK_THROWS_AS(relu(x), std::logic_error);
  recorder.reset();
  CHECK_NOTHROW(recorder.start(tensor::zeros({1}), tape::input_gradient::wanted));
  auto foreign = other.start(tensor::zeros({1}), tape::input_gradient::wanted);
  CHECK_THROWS_AS(add(x, foreign), std::invalid_argument);
}
