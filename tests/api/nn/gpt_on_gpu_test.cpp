// A GPT trains on a GPU as on the CPU: every operation from its embedding to the optimizer's step is there.
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "support/devices.hpp"
#include "troupe/autograd/autocast.hpp"
#include "troupe/autograd/captured_pass.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/nn/gpt.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/optim/clip.hpp"

namespace nn = troupe::nn;
using troupe::device;
using troupe::dtype;
using troupe::tensor;

namespace {

constexpr std::int64_t batch = 3, length = 33, vocabulary = 67;

tensor tokens(std::uint64_t shift) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < batch * length; ++i)
    values.push_back((i * i + 5 * (i + static_cast<std::int64_t>(shift))) % vocabulary);
  return tensor::from(values, {batch, length});
}

enum class queueing { each_kernel, recorded };

/// The losses of some steps, all computed on one device, one of them on another batch.
std::vector<double> losses_on(device target, dtype type, queueing mode = queueing::each_kernel) {
  troupe::autocast mixed(type);
  nn::GPT model({.vocabulary = vocabulary, .context = 40, .features = 48, .num_layers = 2, .num_heads = 3});
  model.materialize(3);
  model.to(target);
  auto parameters = model.parameters();
  auto optimizer = troupe::optim::AdamW({.lr = 1e-2})(model.named_parameters());
  auto inputs = tokens(0).to(target), labels = tokens(1).to(target);
  tensor loss_sum;
  auto forward_and_backward = [&] {
    auto result = cross_entropy(model.forward({inputs}), labels, 1.0 / (batch * length));
    result.loss.backward();
    loss_sum = result.device_loss_sum;
  };
  troupe::captured_pass recorded(target, forward_and_backward, parameters);
  std::vector<double> losses;
  for (std::uint64_t step = 0; step < 6; ++step) {
    std::uint64_t batch_number = step == 3 ? 1 : 0;
    inputs.copy_from(tokens(batch_number));
    labels.copy_from(tokens(batch_number + 1));
    if (mode == queueing::recorded)
      recorded.run();
    else
      forward_and_backward();
    troupe::optim::clip_grad_norm(parameters, 1);
    optimizer->apply(step);
    losses.push_back(loss_sum.to({}).values<float>()[0] / (batch * length));
  }
  CHECK(recorded.is_captured() == (mode == queueing::recorded));
  return losses;
}

void require_close(const std::vector<double>& got, const std::vector<double>& expected, double tolerance) {
  REQUIRE(got.size() == expected.size());
  CHECK(got.back() < got.front() - 0.1);
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i, got[i], expected[i]);
    CHECK(std::abs(got[i] - expected[i]) <= tolerance * expected[i]);
  }
}

}  // namespace

TEST_CASE("a GPT's losses on a GPU are the CPU's, in f32 and in mixed precision") {
  auto gpu = troupe::testing::first_gpu();
  require_close(losses_on(gpu, dtype::f32), losses_on({}, dtype::f32), 1e-3);
  require_close(losses_on(gpu, dtype::bf16), losses_on({}, dtype::bf16), 2e-2);
}

TEST_CASE("a GPT's training on a GPU gives the same bits every time") {
  auto gpu = troupe::testing::first_gpu();
  CHECK(losses_on(gpu, dtype::bf16) == losses_on(gpu, dtype::bf16));
}

TEST_CASE("a GPT's recorded steps give the bits of those whose kernels are queued one by one") {
  auto gpu = troupe::testing::first_gpu();
  for (auto type : {dtype::f32, dtype::bf16})
    CHECK(losses_on(gpu, type, queueing::recorded) == losses_on(gpu, type));
}
