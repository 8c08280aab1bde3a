#include "bench/compute/compute_models.hpp"

#include "troupe/autograd/functions.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/nn/activation.hpp"
#include "troupe/nn/conv2d.hpp"
#include "troupe/nn/flatten.hpp"
#include "troupe/nn/gpt.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/norm.hpp"
#include "troupe/nn/pooling.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/random/fill.hpp"
#include "troupe/random/philox.hpp"
#include "troupe/tensor/devices.hpp"
#include "troupe/tensor/memory.hpp"

namespace troupe::bench {
namespace {

constexpr std::int64_t num_batches = 8, num_classes = 10;
constexpr std::uint64_t seed = 1;

tensor random_integers(shape extents, std::int64_t below, std::uint32_t stream) {
  auto result = tensor::empty(std::move(extents), dtype::i64);
  auto values = result.values<std::int64_t>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::int64_t{philox4x32({static_cast<std::uint32_t>(i), stream, 0, 0}, {3, 4})[0]} % below;
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

std::int64_t or_usual(std::int64_t wanted, std::int64_t usual) { return wanted == 0 ? usual : wanted; }

compute_model make_gpt(const nn::gpt_options& gpt, std::int64_t batch, std::int64_t length) {
  compute_model made;
  made.module = std::make_shared<nn::GPT>(gpt);
  made.optimizer = optim::AdamW({.lr = 3e-4});
  made.unit = "tokens";
  made.items = batch * length;
  made.classes = gpt.vocabulary;
  made.inputs = random_integers({num_batches, batch, length}, made.classes, 1);
  made.labels = random_integers({num_batches, made.items}, made.classes, 2);
  auto rows = static_cast<double>(made.items), width = static_cast<double>(gpt.features);
  // Half of each attention matrix is masked; its backward has two products for each of the forward's two.
  auto attention = 2 * 2 * rows * static_cast<double>(length) / 2 * width * 3;
  made.step_flops = gpt.num_layers * (flops_of_linear(rows, width, 12 * width) + attention) +
                    flops_of_linear(rows, width, static_cast<double>(made.classes));
  return made;
}

compute_model make_gpt(const compute_model_options& options) {
  nn::gpt_options gpt{.tie_weights = false};
  if (options.name == "gpt2") {
    gpt = nn::gpt2_124m();
    gpt.vocabulary = 50304;  // a multiple of 64, at which matrix products run faster
  }
  auto length = or_usual(options.length, gpt.context);
  if (length > gpt.context)
    throw bad_input("--length " + std::to_string(length) + ": the model's context is " +
                    std::to_string(gpt.context));
  return make_gpt(gpt, or_usual(options.batch, options.name == "gpt2" ? 16 : 8), length);
}

/// Everything but the products' work of a model that puts samples into ten classes.
compute_model make_classifier(nn::Sequential module, optim::Optimizer optimizer, std::int64_t batch,
                              std::vector<std::int64_t> sample) {
  compute_model made;
  made.module = std::make_shared<nn::Sequential>(std::move(module));
  made.optimizer = std::move(optimizer);
  sample.insert(sample.begin(), {num_batches, batch});
  made.inputs = random_numbers(shape(sample));
  made.labels = random_integers({num_batches, batch}, num_classes, 2);
  made.unit = "samples";
  made.items = batch;
  made.classes = num_classes;
  return made;
}

compute_model make_mlp(const compute_model_options& options) {
  auto batch = or_usual(options.batch, 256);
  auto rows = static_cast<double>(batch);
  nn::Sequential module(nn::Linear(784, 2048), nn::ReLU(), nn::Linear(2048, 2048), nn::ReLU(),
                        nn::Linear(2048, num_classes));
  auto made = make_classifier(std::move(module), optim::Adam({.lr = 1e-3}), batch, {784});
  made.step_flops = flops_of_linear(rows, 784, 2048, 2) + flops_of_linear(rows, 2048, 2048) +
                    flops_of_linear(rows, 2048, num_classes);
  return made;
}

compute_model make_cnn(const compute_model_options& options) {
  auto batch = or_usual(options.batch, 128);
  auto rows = static_cast<double>(batch);
  nn::Sequential module(nn::Conv2d(1, 32, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2),
                        nn::Conv2d(32, 64, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(),
                        nn::Linear(3136, 128), nn::ReLU(), nn::Linear(128, num_classes));
  auto made = make_classifier(std::move(module), optim::Adam({.lr = 1e-3}), batch, {1, 28, 28});
  made.step_flops = flops_of_linear(rows * 28 * 28, 9, 32, 2) + flops_of_linear(rows * 14 * 14, 9 * 32, 64) +
                    flops_of_linear(rows, 3136, 128) + flops_of_linear(rows, 128, num_classes);
  return made;
}

/// A residual layer.
class residual : public nn::module_of<residual> {
 public:
  variable forward(const variable& x) override { return add(x, linear_(relu(norm_(x)))); }
  void each_child(const child_visitor& visit) override {
    visit("norm", norm_);
    visit("linear", linear_);
  }

 private:
  nn::LayerNorm norm_{64};
  nn::Linear linear_{64, 64};
};

compute_model make_loop(const compute_model_options& options) {
  auto batch = or_usual(options.batch, 32);
  auto rows = static_cast<double>(batch);
  auto made = make_classifier(nn::Sequential(residual(), residual(), nn::Linear(64, num_classes)),
                              optim::AdamW({.lr = 1e-3}), batch, {64});
  made.step_flops = 2 * flops_of_linear(rows, 64, 64) + flops_of_linear(rows, 64, num_classes);
  return made;
}

compute_model make_named(const compute_model_options& options) {
  if (options.name == "mlp") return make_mlp(options);
  if (options.name == "cnn") return make_cnn(options);
  if (options.name == "loop") return make_loop(options);
  if (options.name == "gpt" || options.name == "gpt2") return make_gpt(options);
  throw bad_input("--model " + options.name + ": expected gpt, gpt2, mlp, cnn or loop");
}

}  // namespace

compute_model make_compute_model(const compute_model_options& options) {
  if (options.batch < 0 || options.length < 0)
    throw bad_input("--batch and --length: expected numbers of at least 1");
  require_device(options.where);
  auto made = make_named(options);
  made.module->materialize(seed);
  made.module->to(options.where);
  made.inputs = made.inputs.to(options.where);
  made.labels = made.labels.to(options.where);
  return made;
}

compute_batch batch_of(const compute_model& model, std::uint64_t number) {
  auto at = static_cast<std::int64_t>(number % num_batches);
  auto one = [at](const tensor& all) {
    auto extents = all.shape().extents();
    return all.rows(at, 1).reshape(shape(std::vector(extents.begin() + 1, extents.end())));
  };
  return {one(model.inputs), one(model.labels)};
}

loss_result loss_of(const compute_model& model, const compute_batch& batch,
                    const std::function<variable(const variable&)>& forward) {
  auto logits = forward({batch.inputs});
  auto rows = logits.value.num_elements() / model.classes;
  return cross_entropy(reshape(logits, {rows, model.classes}), batch.labels, 1 / static_cast<double>(rows));
}

loss_result loss_of(compute_model& model, std::uint64_t number,
                    const std::function<variable(const variable&)>& forward) {
  return loss_of(model, batch_of(model, number), forward);
}

double train_step(compute_model& model, optim::optimizer_state& optimizer, std::uint64_t number) {
  memory_scope counted(memory_category::activations);
  auto result = loss_of(model, number, [&](const variable& x) { return model.module->forward(x); });
  result.loss.backward();
  optimizer.apply(number);
  return result.loss_sum / static_cast<double>(result.num_counted);
}

}  // namespace troupe::bench
