// Trainers of pipelines whose layers a DeviceMap places.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>

#include "package/synthetic.hpp"
#include "support/bits.hpp"
#include "support/temp_folder.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

nn::Sequential three_layers() {
  nn::Sequential model;
  model.push_back("first", nn::Linear(2, 16));
  model.push_back("blocks", nn::Sequential(nn::Linear(16, 16), nn::ReLU(), nn::Linear(16, 16)));
  model.push_back("last", nn::Linear(16, 4));
  return model;
}

job_options few_steps() {
  auto options = small_options();
  options.steps = 6;
  return options;
}

Pipeline mapped_pipeline(int microbatches) {
  return Pipeline(three_layers()).microbatches(microbatches).optimizer(optim::Adam({.lr = 0.01}));
}

/// First and last layer on one device, what is between them on two others.
DeviceMap around() {
  return DeviceMap().layer("first", 0).layers("blocks.0..2", 1).layer("blocks.2", 2).layer("last", 0);
}

struct mapped_outcome {
  std::vector<named_tensor> weights;
  tensor predictions;
  evaluation_result evaluation;
};

mapped_outcome trained_by_map(const Pipeline& pipeline, int devices) {
  auto samples = four_corners(64);
  Trainer trainer(World::local(devices, few_steps()), pipeline);
  trainer.fit(samples);
  return {trainer.state_dict(), trainer.predict(samples), trainer.evaluate(samples)};
}

}  // namespace

TEST_CASE("a device map gives the weights of any other cut, as a pipeline and with one microbatch") {
  for (int microbatches : {1, 4}) {
    CAPTURE(microbatches);
    auto whole = trained_by_map(mapped_pipeline(microbatches).stages(1), 1);
    auto placed = trained_by_map(mapped_pipeline(microbatches).device_map(around()), 3);
    CHECK(same_bits(placed.weights, whole.weights));
    CHECK(same_bits(placed.predictions, whole.predictions));
    CHECK(placed.evaluation.loss == whole.evaluation.loss);
  }
}

TEST_CASE(
    "the plan of a device map has the stages and devices that it says, with every schedule that allows it") {
  for (auto kind : {schedule_kind::gpipe, schedule_kind::one_f_one_b, schedule_kind::zb_h1}) {
    Trainer trainer(World::local(4, few_steps()), mapped_pipeline(4).schedule(kind).device_map(around()));
    CHECK(trainer.training_plan().device_of_stage == std::vector{0, 1, 2, 0});
    CHECK(trainer.training_plan().num_devices() == 3);
  }
  auto refused = mapped_pipeline(4).schedule(schedule_kind::interleaved_1f1b).device_map(around());
  CHECK_THROWS_MATCHES(
      Trainer(World::local(3, few_steps()), refused), bad_input,
      MessageMatches(ContainsSubstring("device map: interleaved_1f1b places the stages itself") &&
                     ContainsSubstring("Choose gpipe, 1f1b, zb_h1, zb_h2 or pipedream_2bw")));
}

TEST_CASE("a device map with devices that the job does not have is refused") {
  CHECK_THROWS_MATCHES(
      Trainer(World::local(2, few_steps()), mapped_pipeline(4).device_map(around())), bad_input,
      MessageMatches(ContainsSubstring("there is no device 2, the job's devices are 0 to 1") &&
                     ContainsSubstring("--devices")));
}

TEST_CASE("a device map comes from a file in the options, and is refused where the program ignores it") {
  temp_folder folder;
  auto options = few_steps();
  options.device_map = folder.path() / "map.yaml";
  options.given = {"device_map"};
  std::ofstream(options.device_map) << around().to_yaml();
  Pipeline pipeline(three_layers(), options);
  CHECK(Trainer(World::local(3, options), pipeline).training_plan().device_of_stage ==
        std::vector{0, 1, 2, 0});
  CHECK(Trainer(World::local(3, options), pipeline).fit(four_corners(64)).steps == 6);
  CHECK_THROWS_MATCHES(
      Trainer(World::local(3, options), mapped_pipeline(4)), bad_input,
      MessageMatches(ContainsSubstring("--device-map") && ContainsSubstring("map.yaml was given")));
}

TEST_CASE("a device map that cannot be read is an error of the Trainer, which tells the others") {
  auto options = few_steps();
  options.device_map = "/nowhere/map.yaml";
  Pipeline pipeline(three_layers(), options);
  CHECK_THROWS_MATCHES(Trainer(World::local(3, options), pipeline), bad_input,
                       MessageMatches(ContainsSubstring("cannot read the device map '/nowhere/map.yaml'")));
}
