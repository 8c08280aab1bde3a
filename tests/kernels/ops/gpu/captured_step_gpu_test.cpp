// Steps that a GPU repeats from a recording.
#include "troupe/tensor/captured_step.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <stdexcept>

#include "support/gpu_agreement.hpp"
#include "troupe/ops/cross_entropy.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/ops/embedding.hpp"
#include "troupe/ops/linear.hpp"
#include "troupe/tensor/memory.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using troupe::captured_step;
using troupe::device;
using troupe::dtype;
using troupe::tensor;
using troupe::testing::first_gpu;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

// Equal bits, products included: a product's plan, found once in a process, serves each that has its shape,
// its dtypes and its operands' alignment, which for whole tensors is the same wherever they lie.
TEST_CASE("GPUs: a replayed step computes from its tensors' current contents without calling its function",
          "[graph]") {
  auto gpu = first_gpu();
  auto x = random_tensor({33, 20}, "x").to(gpu), weight = random_tensor({15, 20}, "w").to(gpu),
       y = tensor::zeros({33, 15}, dtype::f32, gpu);
  int calls = 0;
  auto compute = [&](const tensor& from) { return add(linear_forward(from, weight, {}), y); };
  captured_step step(gpu, [&] {
    ++calls;
    y.copy_from(compute(x));
  });
  auto expected = y.clone();
  for (int run = 0; run < 5; ++run) {
    x.copy_from(random_tensor({33, 20}, std::to_string(run)));
    y.copy_from(expected);
    expected = compute(x);
    step.run();
    CHECK(same_bits(y, expected));
    CHECK(step.is_captured() == (run > 0));
  }
  CHECK(calls == 2);
}

TEST_CASE("GPUs: a recording keeps its memory until it is destroyed", "[graph]") {
  auto gpu = first_gpu();
  auto x = random_tensor({1000}, "x").to(gpu), y = tensor::zeros({1000}, dtype::f32, gpu);
  auto before = troupe::memory_of(gpu).current;
  {
    captured_step step(gpu, [&] { y.copy_from(add(add(x, x), add(x, x))); });
    step.run();
    CHECK(troupe::memory_of(gpu).current == before);
    step.run();
    CHECK(troupe::memory_of(gpu).current >= before + 4000);
    auto others = random_tensor({1000}, "others").to(gpu);  // not in the recording's memory
    step.run();
    CHECK(same_bits(others, random_tensor({1000}, "others")));
    CHECK(same_bits(y, add(add(x, x), add(x, x))));
  }
  CHECK(troupe::memory_of(gpu).current == before);
}

TEST_CASE("GPUs: copies from the CPU repeat the recorded bytes, and copies to it cannot be recorded",
          "[graph]") {
  auto gpu = first_gpu();
  auto y = tensor::zeros({7}, dtype::f32, gpu), here = tensor::full({7}, 1);
  captured_step from_cpu(gpu, [&] { y.copy_from(here); });
  from_cpu.run();
  from_cpu.run();
  here = tensor::full({7}, 2);
  y.fill_zero();
  from_cpu.run();
  CHECK(same_bits(y, tensor::full({7}, 1)));

  captured_step to_cpu(gpu, [&] { here.copy_from(y); });
  to_cpu.run();
  CHECK_THROWS_MATCHES(
      to_cpu.run(), std::logic_error,
      MessageMatches(ContainsSubstring("captured_step") && ContainsSubstring("after the run")));
  CHECK_FALSE(to_cpu.is_captured());
  CHECK(same_bits(y.clone(), tensor::full({7}, 1)));  // the GPU goes on
}

TEST_CASE("GPUs: embeddings and losses are recorded, and indices out of range give NaN", "[graph]") {
  auto gpu = first_gpu();
  auto table = random_tensor({5, 9}, "table").to(gpu), dtable = tensor::zeros({5, 9}, dtype::f32, gpu),
       rows = tensor::zeros({4, 9}, dtype::f32, gpu), loss = tensor::zeros({}, dtype::f32, gpu);
  auto indices = tensor::from(std::vector<std::int64_t>{1, 4, 4, 0}, {4}).to(gpu);
  captured_step step(gpu, [&] {
    rows.copy_from(embedding_forward(table, indices));
    auto result = cross_entropy_forward(rows, indices);
    loss.copy_from(result.device_loss_sum);
    auto gradient = cross_entropy_backward(rows, indices, result.log_sum_exp, 1);
    embedding_backward_weight(indices, gradient, dtable, troupe::gradient_mode::assign);
  });
  step.run();
  auto expected_loss = loss.clone(), expected_gradient = dtable.clone();
  step.run();
  CHECK(same_bits(loss, expected_loss));
  CHECK(same_bits(dtable, expected_gradient));
  indices.copy_from(tensor::from(std::vector<std::int64_t>{1, 5, -1, 0}, {4}));
  step.run();
  CHECK(std::isnan(troupe::testing::values_of(loss)[0]));
  auto seen = troupe::testing::values_of(rows);
  CHECK(std::isnan(seen[9]));
  CHECK(std::isnan(seen[18]));
  CHECK_FALSE(std::isnan(seen[0]));
  CHECK_FALSE(std::isnan(troupe::testing::values_of(dtable)[36]));  // row 4, which nothing was added to
}
