#include "troupe/planning/profile_model.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "support/models/graph_models.hpp"
#include "support/random_tensor.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/nn/embedding.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/module.hpp"
#include "troupe/nn/norm.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/nn/tied_linear.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/optim/sgd.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

batch images_of(std::int64_t rows, std::int64_t pixels) {
  std::vector<std::int64_t> labels;
  for (std::int64_t row = 0; row < rows; ++row) labels.push_back(row % 3);
  return {random_tensor({rows, pixels}, "images"), tensor::from(labels, {rows})};
}

const layer_cost& layer_of(const cost_profile& profile, std::string_view name) {
  for (const auto& layer : profile.layers)
    if (layer.name == name) return layer;
  throw std::logic_error("no layer " + std::string(name));
}

/// Computes nothing, and takes a while for it.
class waiting_layer : public nn::module_of<waiting_layer> {
 public:
  static constexpr double waits_s = 0.05;
  variable forward(const variable& input) override {
    std::this_thread::sleep_for(std::chrono::duration<double>(waits_s));
    return input * 1.0F;
  }
};

}  // namespace

TEST_CASE("a profile has the layers of the model, their memory by category, and the bytes between them") {
  auto model = residual_network(3);
  auto profile =
      profile_model(Pipeline(model).optimizer(optim::Adam()), images_of(4, 36), {.num_repeats = 2});
  CHECK(profile.microbatch_samples == 4);
  CHECK(profile.names() == model.names());
  const auto& stem = layer_of(profile, "stem");
  std::uint64_t parameters = 192 + 64;  // 4 x 9 and 4 floats, in blocks of the allocator
  CHECK(stem.parameter_bytes == parameters);
  CHECK(stem.gradient_bytes == parameters);
  CHECK(stem.optimizer_bytes >= 2 * parameters);  // Adam's two moments
  CHECK(stem.buffer_bytes == 0);
  CHECK(stem.activation_bytes >= 4 * 4 * 36 * sizeof(float));  // at least its output
  CHECK(stem.forward_s > 0);
  CHECK(layer_of(profile, "block1.norm1").buffer_bytes >= 2 * 4 * sizeof(float));
  CHECK(layer_of(profile, "block1.relu1").parameter_bytes == 0);
  // The stem's output goes to the first block twice: into it and around it.
  std::vector<layer_value> from_stem;
  for (const auto& value : profile.values)
    if (value.from == 1) from_stem.push_back(value);
  CHECK(from_stem == std::vector<layer_value>{{1, 0, 2, 4 * 4 * 36 * 4}, {1, 0, 6, 4 * 4 * 36 * 4}});
  CHECK(profile_from_json(to_json(profile)) == profile);
}

TEST_CASE("layers within a chain of the model are measured apart, unless weights are tied within") {
  nn::Sequential model;
  model.push_back("blocks", nn::Sequential(nn::Sequential(nn::Linear(6, 6), nn::ReLU()), nn::Linear(6, 6)));
  model.push_back("tied", nn::Sequential(nn::Linear(6, 6), nn::TiedLinear(6, 6, "0.weight")));
  model.push_back("head", nn::Linear(6, 3));
  Pipeline pipeline(model);
  auto profile = profile_model(pipeline, images_of(4, 6), {.num_repeats = 1});
  CHECK(profile.names() == std::vector<std::string>{"blocks.0.0", "blocks.0.1", "blocks.1", "tied", "head"});
  // The map that it makes names them, and the pipeline takes its model apart.
  pipeline.device_map(DeviceMap::automatic(profile, {.devices = {{}, {}, {}, {}}}));
  CHECK(pipeline.partition(4) == std::vector<stage_range>{{0, 2}, {2, 3}, {3, 4}, {4, 5}});
}

TEST_CASE("tied weights and integers between layers are measured too") {
  nn::Sequential model;
  model.push_back("wte", nn::Embedding(5, 6));
  model.push_back("norm", nn::LayerNorm(6));
  model.push_back("head", nn::TiedLinear(6, 5, "wte.weight"));
  std::vector<std::int64_t> tokens{0, 1, 2, 3, 4, 0};
  batch microbatch{tensor::from(tokens, {2, 3}), tensor::from(tokens, {2, 3})};
  auto pipeline = Pipeline(model).optimizer(optim::SGD({.lr = 0.1})).clip_grad_norm(1);
  auto profile = profile_model(pipeline, microbatch, {.num_repeats = 1});
  CHECK(profile.microbatch_samples == 2);
  CHECK(layer_of(profile, "wte").parameter_bytes == 128);
  CHECK(layer_of(profile, "head").parameter_bytes == 128);
  CHECK(profile.values == std::vector<layer_value>{{0, 0, 1, 2 * 3 * 6 * 4}, {1, 0, 2, 2 * 3 * 6 * 4}});
}

TEST_CASE("with one thread a layer costs what its processor does, not what passes meanwhile") {
  nn::Sequential model;
  model.push_back("first", nn::Linear(6, 6));
  model.push_back("waits", waiting_layer());
  model.push_back("head", nn::Linear(6, 3));
  auto pipeline = Pipeline(model).optimizer(optim::SGD({.lr = 0.1}));
  auto profile = profile_model(pipeline, images_of(4, 6), {.num_repeats = 1});
  // As if another program had the core for so long.
  CHECK(layer_of(profile, "waits").forward_s < waiting_layer::waits_s);
}

TEST_CASE("a profile needs samples, targets and a repeat") {
  Pipeline pipeline(residual_network(3));
  auto expect = [&pipeline](const batch& microbatch, const profile_options& options,
                            const std::string& part) {
    CHECK_THROWS_MATCHES(profile_model(pipeline, microbatch, options), std::invalid_argument,
                         MessageMatches(ContainsSubstring(part)));
  };
  expect({}, {}, "a microbatch with samples");
  expect({random_tensor({4, 36}, "x"), {}}, {}, "a microbatch with targets");
  expect(images_of(4, 36), {.num_repeats = 0}, "at least 1 repeat");
}
