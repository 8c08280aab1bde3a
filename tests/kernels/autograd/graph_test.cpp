#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <stdexcept>

#include "kernels/autograd/make_parameter.hpp"
#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/autograd/backward_pass.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/grad_mode.hpp"
#include "troupe/autograd/gradient_rows.hpp"
#include "troupe/ops/linear.hpp"

using troupe::backward_pass;
using troupe::gradient_rows_at_a_time;
using troupe::leaf;
using troupe::parameter;
using troupe::tensor;
using troupe::variable;
using troupe::testing::make_parameter;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

namespace {

/// Two layers, with the sum of a layer's input and output between them.
struct model {
  parameter first = make_parameter("first", {6, 5}), first_bias = make_parameter("first_bias", {6}),
            square = make_parameter("square", {6, 6}), last = make_parameter("last", {3, 6});

  variable forward(const variable& x) {
    auto hidden = relu(linear(x, first, &first_bias));
    return linear(add(hidden, relu(linear(hidden, square, nullptr))), last, nullptr);
  }
  std::vector<parameter*> parameters() { return {&first, &first_bias, &square, &last}; }
};

bool same_gradients(model& a, model& b) {
  return std::ranges::equal(a.parameters(), b.parameters(), [](const auto* x, const auto* y) {
    return x->has_gradient && y->has_gradient && same_bits(x->gradient(), y->gradient());
  });
}

/// Counts how often it is run, and tells when it is destroyed.
class probe : public troupe::operation {
 public:
  struct log {
    int inputs = 0, weights = 0, releases = 0, destroyed = 0;
  };
  probe(log& to, parameter* adds_to) : log_(to), adds_to_(adds_to) {}
  ~probe() override { ++log_.destroyed; }
  std::vector<tensor> backward_input(const tensor& dy) override {
    ++log_.inputs;
    return {dy};
  }
  void backward_weight(const tensor&) override { ++log_.weights; }
  std::vector<parameter*> parameters() const override { return troupe::trainable_parameters({adds_to_}); }
  void release_inputs() override { ++log_.releases; }

 private:
  log& log_;
  parameter* adds_to_;
};

variable probed(const variable& x, probe::log& log, parameter* adds_to = nullptr) {
  return record(tensor::zeros({1}), {x}, std::make_unique<probe>(log, adds_to));
}

const tensor one = tensor::full({1}, 1);

}  // namespace

TEST_CASE("weight gradients computed after input gradients have the same bits as both computed at once") {
  auto x = random_tensor({4, 5}, "x"), dy = random_tensor({4, 3}, "dy");
  model split, joined;
  auto a = leaf(x), b = leaf(x);
  backward_pass pass(split.forward(a));
  joined.forward(b).backward(dy);
  pass.run_inputs(dy);
  CHECK_FALSE(split.first.has_gradient);
  CHECK(a.gradient().shape() == x.shape());
  pass.run_weights();
  CHECK(same_bits(a.gradient(), b.gradient()));
  CHECK(same_gradients(split, joined));
}

TEST_CASE("nothing is recorded within no_grad, and the values are the same") {
  auto x = random_tensor({4, 5}, "x");
  model m;
  auto recorded = m.forward({x, nullptr});
  CHECK(recorded.requires_gradient());
  {
    troupe::no_grad outer;
    troupe::no_grad inner;
    auto plain = m.forward(leaf(x));
    CHECK_FALSE(plain.requires_gradient());
    CHECK(same_bits(plain.value, recorded.value));
    {
      troupe::enable_grad again;
      CHECK(m.forward(leaf(x)).requires_gradient());
    }
    CHECK_FALSE(troupe::is_grad_enabled());
  }
  CHECK(troupe::is_grad_enabled());
  CHECK_FALSE(detach(recorded).requires_gradient());
}

TEST_CASE("an input without required gradient changes no weight gradient") {
  auto x = random_tensor({4, 5}, "x"), dy = random_tensor({4, 3}, "dy");
  model wanted, unwanted;
  auto constant = variable{x, nullptr};
  wanted.forward(leaf(x)).backward(dy);
  unwanted.forward(constant).backward(dy);
  CHECK_FALSE(constant.gradient().defined());
  CHECK(same_gradients(wanted, unwanted));
}

TEST_CASE("gradients accumulate over passes, in order, until the optimizer has used them") {
  auto weight = make_parameter("direct", {3, 5});
  auto expected = tensor::zeros({3, 5});
  weight.gradient() = tensor::full({3, 5}, 1e30F);  // of no meaning before the first contribution
  for (const auto* name : {"a", "b", "c"}) {
    auto x = random_tensor({4, 5}, name), dy = random_tensor({4, 3}, name);
    linear({x, nullptr}, weight, nullptr).backward(dy);
    troupe::linear_backward_weight(x, dy, expected, {});
  }
  CHECK(same_bits(weight.gradient(), expected));
}

TEST_CASE("a leaf's gradient is the sum over its uses and over passes") {
  auto x = leaf(random_tensor({2, 3}, "x"));
  auto dy = random_tensor({2, 3}, "dy");
  add(x, x).backward(dy);
  for (std::size_t i = 0; i < 6; ++i) CHECK(x.gradient().values<float>()[i] == 2 * dy.values<float>()[i]);
  auto first = x.gradient().clone();
  add(x, {dy, nullptr}).backward(dy);
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(x.gradient().values<float>()[i] == first.values<float>()[i] + dy.values<float>()[i]);
  CHECK(same_bits(dy, random_tensor({2, 3}, "dy")));
}

TEST_CASE("tensors that only the input gradient needs are released before the weight gradients") {
  probe::log with, without;
  auto p = make_parameter("p", {1});
  backward_pass pass(probed(probed(leaf(one), with, &p), without));
  pass.run_inputs(one);
  CHECK(with.inputs == 1);
  CHECK(without.inputs == 1);
  CHECK(without.destroyed == 1);
  CHECK(with.releases == 1);
  CHECK(with.destroyed == 0);
  pass.run_weights();
  CHECK(with.weights == 1);
  CHECK(with.destroyed == 1);
  CHECK(without.weights == 0);
}

TEST_CASE("frozen parameters get no gradient, and operations without required gradients are not recorded") {
  probe::log log;
  auto p = make_parameter("p", {1});
  p.requires_gradient = false;
  CHECK_FALSE(probed({one, nullptr}, log, &p).requires_gradient());
  CHECK(log.destroyed == 1);
  probed(leaf(one), log, &p).backward(one);
  CHECK(log.inputs == 1);
  CHECK(log.weights == 0);
}

TEST_CASE("a retained graph runs backward again, and the error of a used one says what to do") {
  model m, twice;
  auto x = random_tensor({4, 5}, "x"), dy = random_tensor({4, 3}, "dy");
  auto y = m.forward(leaf(x));
  y.backward(dy, {.retain_graph = true});
  y.backward(dy);
  for (int pass = 0; pass < 2; ++pass) twice.forward(leaf(x)).backward(dy);
  CHECK(same_gradients(m, twice));
  CHECK_THROWS_AS(y.backward(dy), std::logic_error);
  CHECK_THROWS_AS((variable{dy, nullptr}).backward(dy), std::logic_error);
}

TEST_CASE("each parameter is reported as ready once, when its gradient is complete") {
  auto shared = make_parameter("shared", {5, 5}), last = make_parameter("last", {5, 5});
  auto x = random_tensor({2, 5}, "x"), dy = random_tensor({2, 5}, "dy");
  auto forward = [&] {
    return linear(linear(linear({x, nullptr}, shared, nullptr), shared, nullptr), last, nullptr);
  };
  forward().backward(dy);
  auto expected = shared.gradient().clone();
  shared.has_gradient = last.has_gradient = false;
  std::vector<std::string> handed;
  forward().backward(dy, {.on_gradient = [&](parameter& ready) {
                       handed.push_back(ready.name);
                       if (ready.name == "shared") CHECK(same_bits(ready.gradient(), expected));
                     }});
  CHECK(handed == std::vector<std::string>{"last", "shared"});
}

TEST_CASE("a value that is no scalar needs an initial gradient") {
  auto x = leaf(random_tensor({2, 3}, "x"));
  CHECK_THROWS_AS(add(x, x).backward(), std::invalid_argument);
  backward_pass twice(add(x, x));
  CHECK_THROWS_AS(twice.run_weights(), std::logic_error);
  twice.run_inputs(x.value);
  CHECK_THROWS_AS(twice.run_inputs(x.value), std::logic_error);
  twice.run_weights();
  CHECK_THROWS_AS(twice.run_weights(), std::logic_error);
}

TEST_CASE("a chain of a hundred thousand operations runs backward and is destroyed without deep recursion") {
  auto run = [](bool back) {
    auto x = leaf(one);
    auto y = x;
    for (int i = 0; i < 100'000; ++i) y = add(y, {one, nullptr});
    if (back) y.backward(one);
    return x.gradient();
  };
  CHECK(same_bits(run(true), one));
  CHECK_FALSE(run(false).defined());
}

namespace {

/// y = x, which tells in which order its two backward functions are called.
class told_identity : public troupe::operation {
 public:
  told_identity(parameter& weight, bool weights_first, std::string& calls)
      : weight_(weight), weights_first_(weights_first), calls_(calls) {}
  std::vector<tensor> backward_input(const tensor& dy) override {
    calls_ += 'i';
    return {dy};
  }
  void backward_weight(const tensor&) override { calls_ += 'w'; }
  bool can_run_weight_first() const override { return weights_first_; }
  std::vector<parameter*> parameters() const override { return {&weight_}; }

 private:
  parameter& weight_;
  bool weights_first_;
  std::string& calls_;
};

}  // namespace

TEST_CASE(
    "weight gradients are computed before the input gradient if an operation allows it, and later on "
    "request") {
  parameter weight("w", tensor::zeros({1}), tensor::zeros({1}));
  auto calls_of = [&](bool allows, auto run) {
    std::string calls;
    auto x = leaf(tensor::full({1}, 2));
    run(record(x.value, {x}, std::make_unique<told_identity>(weight, allows, calls)));
    return calls;
  };
  auto at_once = [](const variable& y) { y.backward(); };
  auto later = [](const variable& y) {
    backward_pass pass(y);
    pass.run_inputs({});
    pass.run_weights();
  };
  CHECK(calls_of(false, at_once) == "iw");
  CHECK(calls_of(true, at_once) == "wi");
  CHECK(calls_of(true, later) == "iw");
}

TEST_CASE(
    "a large weight's gradient is reported in blocks of rows, with the elements of the whole gradient") {
  auto x = random_tensor({3, 1100}, "x"), dy = random_tensor({3, 2000}, "dy");
  auto weight = make_parameter("weight", {2000, 1100}), bias = make_parameter("bias", {2000});
  auto whole = make_parameter("whole", {2000, 1100}), whole_bias = make_parameter("whole_bias", {2000});
  linear({x, nullptr}, whole, &whole_bias).backward(dy);
  std::vector<std::int64_t> told;
  std::int64_t checked = 0;
  bool are_same = true;
  auto on_rows = [&](parameter& param, std::int64_t count) {
    if (&param == &bias) return told.push_back(-count);
    told.push_back(count);
    auto a = weight.gradient().rows(checked, count - checked),
         b = whole.gradient().rows(checked, count - checked);
    for (std::int64_t i = 0; i < a.num_elements(); ++i) {
      auto at = static_cast<std::size_t>(i);
      are_same = are_same && std::abs(a.values<float>()[at] - b.values<float>()[at]) < 1e-5F;
    }
    checked = count;
  };
  std::size_t num_complete = 0;
  linear({x, nullptr}, weight, &bias)
      .backward(dy, {.on_gradient = [&](parameter&) { ++num_complete; }, .on_rows = on_rows});
  CHECK(told == std::vector<std::int64_t>{-2000, 672, 1344, 2000});
  CHECK(are_same);
  CHECK(same_bits(bias.gradient(), whole_bias.gradient()));
  CHECK(num_complete == 2);
}

TEST_CASE("blocks of a gradient have some 2^20 elements, and at least 512 rows") {
  CHECK(gradient_rows_at_a_time({2048, 2048}) == 512);
  CHECK(gradient_rows_at_a_time({2048, 784}) == 1024);
  CHECK(gradient_rows_at_a_time({50304, 768}) == 1360);
  CHECK(gradient_rows_at_a_time({4096, 16384}) == 512);
  CHECK(gradient_rows_at_a_time({600, 16384}) >= 600);
  CHECK(gradient_rows_at_a_time({10, 10}) >= 10);
}

TEST_CASE("rows of a weight that is used twice are reported only when they are complete") {
  auto weight = make_parameter("weight", {1100, 1100});
  auto x = random_tensor({2, 1100}, "x");
  std::vector<std::string> told;
  linear(linear({x, nullptr}, weight, nullptr), weight, nullptr)
      .backward(x, {.on_gradient = [&](parameter&) { told.push_back("complete"); },
                    .on_rows = [&](parameter&, std::int64_t) { told.push_back("rows"); }});
  CHECK(told == std::vector<std::string>{"rows", "rows", "complete"});
}
