#include <catch2/catch_test_macros.hpp>

#include "support/devices.hpp"
#include "support/models/graph_models.hpp"
#include "support/random_tensor.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/planning/profile_model.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("a profile of a GPU has the layers, values and states of one of the CPU, with times of its own") {
  auto pipeline = Pipeline(residual_network(3)).optimizer(optim::Adam());
  batch samples{random_tensor({4, 36}, "images"), tensor::from(std::vector<std::int64_t>{0, 1, 2, 0}, {4})};
  auto on_cpu = profile_model(pipeline, samples, {.num_repeats = 2});
  auto on_gpu = profile_model(pipeline, samples, {.num_repeats = 2, .place = first_gpu()});
  REQUIRE(on_gpu.names() == on_cpu.names());
  CHECK(on_gpu.values == on_cpu.values);
  for (std::size_t layer = 0; layer < on_gpu.layers.size(); ++layer) {
    INFO(on_gpu.layers[layer].name);
    CHECK(on_gpu.layers[layer].forward_s > 0);
    CHECK(on_gpu.layers[layer].parameter_bytes == on_cpu.layers[layer].parameter_bytes);
    CHECK(on_gpu.layers[layer].optimizer_bytes == on_cpu.layers[layer].optimizer_bytes);
  }
  CHECK_THROWS_AS(profile_model(pipeline, samples, {.place = {device::kind::cuda, 99}}), bad_input);
}
