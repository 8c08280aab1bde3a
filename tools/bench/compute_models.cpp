#include "compute_models.hpp"

#include "troupe/autograd/functions.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/nn/activation.hpp"
#include "troupe/nn/conv2d.hpp"
#include "troupe/nn/flatten.hpp"
#include "troupe/nn/gpt.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/pooling.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/random/philox.hpp"
#include "troupe/random/uniform.hpp"

namespace troupe::bench {
namespace {

constexpr std::int64_t num_batches = 8;
constexpr std::uint64_t seed = 1;

tensor random_integers(shape extents, std::uint32_t below, std::uint32_t stream) {
  auto result = tensor::empty(std::move(extents), dtype::i64);
  auto values = result.values<std::int64_t>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = philox4x32({static_cast<std::uint32_t>(i), stream, 0, 0}, {3, 4})[0] % below;
  return result;
}

tensor random_numbers(shape extents) {
  auto result = tensor::empty(std::move(extents));
  fill_uniform(result, -1.7F, 1.7F, seed, "inputs");  // of variance 1, nearly
  return result;
}

/// Forward, input gradient and weight gradient cost as much each, but a first layer has no input gradient.
double flops_of_linear(double rows, double in, double out, int passes = 3) {
  return 2 * rows * in * out * passes;
}

compute_model make_gpt() {
  constexpr double rows = 8 * 128, width = 256, layers = 4, context = 128;
  compute_model made;
  made.module = std::make_shared<nn::GPT>(nn::gpt_options{.tie_weights = false});
  made.optimizer = optim::AdamW({.lr = 3e-4});
  made.inputs = random_integers({num_batches, 8, 128}, 256, 1);
  made.labels = random_integers({num_batches, 8 * 128}, 256, 2);
  made.unit = "tokens";
  made.items = 8 * 128;
  made.classes = 256;
  // Half of each attention matrix is masked; its backward has two products for each of the forward's two.
  auto attention = 2 * 2 * rows * (context / 2) * width * 3;
  made.step_flops =
      layers * (flops_of_linear(rows, width, 12 * width) + attention) + flops_of_linear(rows, width, 256);
  return made;
}

compute_model make_mlp() {
  compute_model made;
  made.module = std::make_shared<nn::Sequential>(nn::Linear(784, 2048), nn::ReLU(), nn::Linear(2048, 2048),
                                                 nn::ReLU(), nn::Linear(2048, 10));
  made.optimizer = optim::Adam({.lr = 1e-3});
  made.inputs = random_numbers({num_batches, 256, 784});
  made.labels = random_integers({num_batches, 256}, 10, 2);
  made.unit = "samples";
  made.items = 256;
  made.classes = 10;
  made.step_flops =
      flops_of_linear(256, 784, 2048, 2) + flops_of_linear(256, 2048, 2048) + flops_of_linear(256, 2048, 10);
  return made;
}

compute_model make_cnn() {
  compute_model made;
  made.module =
      std::make_shared<nn::Sequential>(nn::Conv2d(1, 32, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2),
                                       nn::Conv2d(32, 64, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2),
                                       nn::Flatten(), nn::Linear(3136, 128), nn::ReLU(), nn::Linear(128, 10));
  made.optimizer = optim::Adam({.lr = 1e-3});
  made.inputs = random_numbers({num_batches, 128, 1, 28, 28});
  made.labels = random_integers({num_batches, 128}, 10, 2);
  made.unit = "samples";
  made.items = 128;
  made.classes = 10;
  made.step_flops = flops_of_linear(128 * 28 * 28, 9, 32, 2) + flops_of_linear(128 * 14 * 14, 9 * 32, 64) +
                    flops_of_linear(128, 3136, 128) + flops_of_linear(128, 128, 10);
  return made;
}

}  // namespace

compute_model make_compute_model(const std::string& name) {
  if (name != "gpt" && name != "mlp" && name != "cnn")
    throw bad_input("--model " + name + ": expected gpt, mlp or cnn");
  auto made = name == "gpt" ? make_gpt() : name == "mlp" ? make_mlp() : make_cnn();
  made.module->materialize(seed);
  return made;
}

double train_step(compute_model& model, optim::optimizer_state& optimizer, std::uint64_t number) {
  auto at = static_cast<std::int64_t>(number % num_batches);
  auto one = [at](const tensor& all) {
    auto extents = all.extents().extents();
    return all.rows(at, 1).reshape(shape(std::vector(extents.begin() + 1, extents.end())));
  };
  auto logits = model.module->forward({one(model.inputs)});
  auto rows = logits.value.num_elements() / model.classes;
  auto result =
      cross_entropy(reshape(logits, {rows, model.classes}), one(model.labels), 1 / static_cast<double>(rows));
  result.loss.backward();
  optimizer.apply(number);
  return result.loss_sum / static_cast<double>(rows);
}

}  // namespace troupe::bench
