// Layers in evaluation mode stay in it while the model is trained, however it is cut, and whatever is
// evaluated between.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "api/replicas/replica_training.hpp"
#include "support/models/models_with_modes.hpp"
#include "support/temp_folder.hpp"
#include "troupe/pipeline/detail/agreement/layer_modes.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

constexpr std::uint64_t steps_of_plain_loop = 6;

struct modes_outcome {
  std::string weights;
  std::vector<named_tensor> state;
};

/// Trains in fits of `steps` each, with evaluations between.
modes_outcome trained_in_modes(int devices, const Pipeline& pipeline, std::uint64_t steps) {
  auto samples = points();
  Trainer trainer(World::local(devices, options_of(steps)), pipeline);
  for (std::uint64_t done = 0; done < steps_of_plain_loop; done += steps) {
    trainer.fit(samples);
    trainer.evaluate(samples);
    trainer.predict(samples);
  }
  return {trainer.weights_sha256(), trainer.state_dict()};
}

tensor value_of(const modes_outcome& from, const std::string& name) {
  return std::ranges::find(from.state, name, &named_tensor::name)->value;
}

bool all_are(const tensor& values, float expected) {
  return std::ranges::all_of(values.values<float>(), [&](float each) { return each == expected; });
}

Pipeline modes_pipeline(const nn::Sequential& model, int stages, int replicas = 1) {
  return replicated(stages, replicas, model);
}

void check(const modes_outcome& found, const std::string& expected) {
  CHECK(found.weights == expected);
  for (const auto* norm : {"2", "3.1", "5.norm"}) {
    CHECK(all_are(value_of(found, std::string(norm) + ".running_mean"), 0));
    CHECK(all_are(value_of(found, std::string(norm) + ".running_var"), 1));
  }
  CHECK_FALSE(all_are(value_of(found, "4.1.running_mean"), 0));
}

}  // namespace

TEST_CASE("layers in evaluation mode stay so, in every cut, over evaluations: the bits of a plain loop") {
  auto model = model_with_modes();
  for (int replicas : {1, 2}) {
    auto expected = plain_loop(replicas, 32, dtype::f32, model).weights;
    for (std::uint64_t steps : {1, 3, 6})
      for (int stages : {1, 2, 4}) {
        CAPTURE(replicas, steps, stages);
        check(
            trained_in_modes(std::min(stages, 2) * replicas, modes_pipeline(model, stages, replicas), steps),
            expected);
      }
    // Cut within the nested layers.
    auto map =
        DeviceMap().layers("0..3", 0).layer("3.0", 0).layers("3.1..3", 1).layer("4.0", 1).layers("4.1..3", 0);
    map.layers("5..9", 0);
    check(trained_in_modes(2 * replicas, modes_pipeline(model, 0, replicas).device_map(map), 3), expected);
  }
}

TEST_CASE("the modes of layers are part of what processes compare, and of what a snapshot belongs to") {
  auto model = model_with_modes();
  CHECK(text_of(detail::modes_of(model)) == "2, 3.1, 5, 5.norm, 7");
  CHECK(text_of(detail::modes_of(nn::Sequential(nn::Linear(2, 2)))) == "none");
  nn::Sequential many;
  for (int layer = 0; layer < 9; ++layer) many.push_back(nn::BatchNorm2d(1));
  many.eval();
  CHECK(detail::modes_of(many).trained.empty());
  CHECK_THAT(text_of(detail::modes_of(many)),
             ContainsSubstring("9 layers (0, 1, 2, 3, 4, 5, 6, 7, ...; hash "));

  temp_folder folder;
  auto options = options_of(2);
  options.snapshot_dir = folder.path();
  Trainer(World::local(1, options), modes_pipeline(model, 1)).fit(points());
  options.resume = true;
  model.train();
  CHECK_THROWS_MATCHES(
      Trainer(World::local(1, options), modes_pipeline(model, 1)), bad_input,
      MessageMatches(ContainsSubstring(
          "layers in evaluation mode has the default value, the snapshot has 2, 3.1, 5, 5.norm, 7")));
}
