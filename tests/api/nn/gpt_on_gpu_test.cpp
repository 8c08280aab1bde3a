// A GPT trains on a GPU as on the CPU: every operation from its embedding to the optimizer's step is there.
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "support/devices.hpp"
#include "troupe/autograd/autocast.hpp"
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

tensor tokens(std::int64_t shift) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < batch * length; ++i) values.push_back((i * i + 5 * (i + shift)) % vocabulary);
  return tensor::from(values, {batch, length});
}

/// The losses of some steps, all computed on one device.
std::vector<double> losses_on(device where, dtype type) {
  troupe::autocast mixed(type);
  nn::GPT model({.vocabulary = vocabulary, .context = 40, .features = 48, .num_layers = 2, .num_heads = 3});
  model.materialize(3);
  model.to(where);
  auto optimizer = troupe::optim::AdamW({.lr = 1e-2})(model.named_parameters());
  auto inputs = tokens(0).to(where), labels = tokens(1).to(where);
  std::vector<double> losses;
  for (std::uint64_t step = 0; step < 6; ++step) {
    auto logits = model.forward({inputs});
    auto result = cross_entropy(logits, labels, 1.0 / (batch * length));
    result.loss.backward();
    auto parameters = model.parameters();
    troupe::optim::clip_grad_norm(parameters, 1);
    optimizer->apply(step);
    losses.push_back(result.loss_sum / (batch * length));
  }
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
