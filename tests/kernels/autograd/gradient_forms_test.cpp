#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <stdexcept>
#include <string>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/autograd/functions.hpp"

using namespace troupe;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

namespace {

/// Brings what it is told to.
class told_operation : public operation {
 public:
  explicit told_operation(std::vector<tensor> gradients) : gradients_(std::move(gradients)) {}
  std::vector<tensor> backward_input(const tensor&) override { return gradients_; }

 private:
  std::vector<tensor> gradients_;
};

variable told(const std::vector<variable>& inputs, std::vector<tensor> gradients) {
  return record(tensor::full({}, 1), inputs, std::make_unique<told_operation>(std::move(gradients)));
}

bool says(const std::function<void()>& action, const std::string& first, const std::string& second) {
  try {
    action();
  } catch (const std::invalid_argument& error) {
    std::string text = error.what();
    return text.find(first) != std::string::npos && text.find(second) != std::string::npos;
  }
  return false;
}

}  // namespace

TEST_CASE("an initial gradient has the value's shape, dtype and device") {
  auto x = leaf(random_tensor({2, 3}, "x"));
  CHECK(says([&] { relu(x).backward(tensor::full({3}, 1)); }, "a gradient f32[2, 3]", "got f32[3]"));
  CHECK(says(
      [&] {
        add(x, 1).backward(tensor::zeros({2, 3}, dtype::i32));
      },
      "a gradient f32[2, 3]", "got i32[2, 3]"));
  CHECK(says([&] { x.backward(tensor::full({3, 2}, 1)); }, "f32[2, 3]", "f32[3, 2]"));
  CHECK_FALSE(x.gradient().defined());
}

TEST_CASE("an operation that returns gradients of the wrong form is named, with the input") {
  auto a = leaf(random_tensor({2}, "a")), b = leaf(random_tensor({3}, "b"));
  auto good = tensor::full({2}, 1);
  CHECK(says(
      [&] {
        told({a, b}, {good}).backward();
      },
      "told_operation::backward_input", "each of 2 inputs, got 1 gradients"));
  CHECK(says(
      [&] {
        told({a, b}, {good, tensor::full({5}, 1)}).backward();
      },
      "told_operation::backward_input a gradient f32[3] for input 1", "got f32[5]"));
  CHECK(says([&] { told({a}, {tensor::zeros({2}, dtype::bf16)}).backward(); }, "f32[2] for input 0",
             "bf16[2]"));
}

TEST_CASE("an undefined gradient counts as zeros, also for earlier operations") {
  auto a = leaf(random_tensor({2}, "a"));
  parameter weight("weight", random_tensor({2}, "weight"), tensor::zeros({2}));
  std::vector<std::string> handed;
  auto before = multiply(a, as_variable(weight));
  told({before}, {tensor()}).backward({}, {.on_gradient = [&](parameter& ready) {
                                        handed.push_back(ready.name);
                                      }});
  CHECK_FALSE(a.gradient().defined());
  CHECK_FALSE(weight.has_gradient);
  CHECK(handed.empty());
}

TEST_CASE("a leaf's gradient is shared neither with the caller's tensor nor with another leaf's") {
  auto a = leaf(random_tensor({2}, "a")), b = leaf(random_tensor({2}, "b"));
  auto given = tensor::full({2}, 1);
  add(a, b).backward(given);
  a.backward(given);
  given.values<float>()[0] = 77;
  CHECK(a.gradient().values<float>()[0] == 2);
  CHECK(b.gradient().values<float>()[0] == 1);
  auto c = leaf(random_tensor({2}, "c"));
  c.backward(given);
  a.gradient().values<float>()[1] = 5;
  given.values<float>()[0] = 78;
  CHECK(b.gradient().values<float>()[1] == 1);
  CHECK(c.gradient().values<float>()[0] == 77);
}

TEST_CASE("a value of another floating dtype starts with a gradient of its own dtype") {
  auto x = leaf(random_tensor({1}, "x"));
  cast(x, dtype::bf16).backward();
  CHECK(x.gradient().values<float>()[0] == 1);
}

TEST_CASE("products name x if x has the wrong dtype") {
  parameter weight("weight", random_tensor({2, 3}, "weight"), tensor::zeros({2, 3}));
  parameter kernel("kernel", random_tensor({1, 1, 2, 2}, "kernel"), tensor::zeros({1, 1, 2, 2}));
  CHECK(says(
      [&] {
        linear({tensor::zeros({4, 3}, dtype::i64)}, weight, nullptr);
      },
      "[linear] expected x", "i64[4, 3]"));
  CHECK(says(
      [&] {
        conv2d({tensor::zeros({1, 1, 3, 3}, dtype::u8)}, kernel, nullptr);
      },
      "[conv2d] expected x", "u8[1, 1, 3, 3]"));
}
