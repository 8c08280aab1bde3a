#include "bench/placement/uneven_models.hpp"

#include <algorithm>

#include "troupe/error/errors.hpp"
#include "troupe/nn/activation.hpp"
#include "troupe/nn/conv2d.hpp"
#include "troupe/nn/flatten.hpp"
#include "troupe/nn/gpt.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/pooling.hpp"
#include "troupe/nn/reshape.hpp"

namespace troupe::bench {
namespace {

constexpr std::int64_t num_classes = 10;

/// Numbers from -0.5 to 0.5, the same in every run.
tensor made_up(const shape& extents, std::int64_t count) {
  std::vector<float> values;
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    values.push_back(static_cast<float>(state >> 8) / static_cast<float>(1U << 24) - 0.5F);
  }
  return tensor::from(values, extents);
}

dataset_ptr classified(std::int64_t num_samples, std::int64_t features) {
  std::vector<std::int64_t> labels;
  for (std::int64_t row = 0; row < num_samples; ++row) labels.push_back(row % num_classes);
  return std::make_shared<dataset>(labelled_samples{made_up({num_samples, features}, num_samples * features),
                                                    tensor::from(labels, {num_samples})});
}

uneven_model make_mlp(std::int64_t num_samples) {
  nn::Sequential model;
  auto add = [&model](std::int64_t in, std::int64_t out) {
    model.push_back(nn::Linear(in, out));
    model.push_back(nn::ReLU());
  };
  add(2048, 2048);
  for (std::int64_t width = 2048; width > 64; width /= 2) add(width, width / 2);
  model.push_back(nn::Linear(64, num_classes));
  return {"mlp", Pipeline(model), classified(num_samples, 2048)};
}

uneven_model make_cnn(std::int64_t num_samples) {
  nn::Sequential model;
  model.push_back(nn::Reshape({3, 32, 32}));
  auto add = [&model](std::int64_t in, std::int64_t out) {
    model.push_back(nn::Conv2d(in, out, 3, {.padding = 1}));
    model.push_back(nn::ReLU());
    model.push_back(nn::MaxPool2d(2));
  };
  add(3, 32);
  add(32, 48);
  add(48, 32);
  add(32, 32);
  model.push_back(nn::Flatten());
  model.push_back(nn::Linear(128, 64));
  model.push_back(nn::ReLU());
  model.push_back(nn::Linear(64, num_classes));
  return {"cnn", Pipeline(model), classified(num_samples, std::int64_t{3} * 32 * 32)};
}

uneven_model make_gpt(std::int64_t num_samples) {
  constexpr std::int64_t context = 32, vocabulary = 4096;
  auto model = nn::gpt_layers({.vocabulary = vocabulary,
                               .context = context,
                               .features = 64,
                               .num_layers = 5,
                               .num_heads = 4,
                               .tie_weights = false});
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < num_samples * context; ++i) tokens.push_back(i * 7919 % vocabulary);
  auto drawn = tensor::from(tokens, {num_samples, context});
  return {"gpt", Pipeline(model), std::make_shared<dataset>(labelled_samples{drawn, drawn})};
}

}  // namespace

const std::vector<std::string>& uneven_model_names() {
  static const std::vector<std::string> names{"mlp", "cnn", "gpt"};
  return names;
}

uneven_model make_uneven_model(const std::string& name, std::int64_t num_samples) {
  if (name == "mlp") return make_mlp(num_samples);
  if (name == "cnn") return make_cnn(num_samples);
  if (name == "gpt") return make_gpt(num_samples);
  throw bad_input("--models " + name + ": expected mlp, cnn or gpt");
}

}  // namespace troupe::bench
