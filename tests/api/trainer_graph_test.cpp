// Trainers of graphs in one process: what they compute does not depend on the cut, and models go out and in.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "api/replicas/replica_training.hpp"
#include "package/synthetic.hpp"
#include "support/bits.hpp"
#include "support/models/graph_models.hpp"
#include "support/random_tensor.hpp"
#include "support/temp_folder.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// 250 images of 3 classes: the last batch of 32 is not whole.
dataset_ptr images(std::int64_t pixels) {
  std::vector<std::int64_t> classes;
  for (std::int64_t row = 0; row < 250; ++row) classes.push_back(row * row % 3);
  return std::make_shared<dataset>(
      labelled_samples{random_tensor({250, pixels}, "images"), tensor::from(classes, {250})});
}

Pipeline graph_pipeline(const nn::Graph& model, std::vector<std::string> cuts) {
  return Pipeline(model).cut_before(std::move(cuts)).microbatches(4).optimizer(optim::Adam({.lr = 0.01}));
}

struct graph_outcome {
  std::vector<named_tensor> weights;
  tensor predictions;
  evaluation_result evaluation;
};

graph_outcome trained_graph(const Pipeline& pipeline, int devices, const dataset_ptr& samples) {
  Trainer trainer(World::local(devices, options_of(9)), pipeline);
  trainer.fit(samples);
  return {trainer.state_dict(), trainer.predict(samples), trainer.evaluate(samples)};
}

/// A module whose output depends on the microbatch.
class Uneven : public nn::module_of<Uneven> {
 public:
  variable forward(const variable& x) override { return ++calls_ % 2 == 0 ? slice(x, 1, 0, 5) : x; }

 private:
  int calls_ = 0;
};

}  // namespace

TEST_CASE("a graph gives the same weights, predictions and losses for every cut and number of devices") {
  auto check = [](const nn::Graph& model, std::int64_t pixels,
                  const std::vector<std::vector<std::string>>& cuts) {
    auto samples = images(pixels);
    auto whole = trained_graph(graph_pipeline(model, {}), 1, samples);
    CHECK(whole.predictions.shape() == shape{250, 3});
    for (const auto& names : cuts)
      for (int devices = 1; devices <= std::min(3, static_cast<int>(names.size()) + 1); ++devices) {
        CAPTURE(names, devices);
        auto cut = trained_graph(graph_pipeline(model, names), devices, samples);
        CHECK(same_bits(cut.weights, whole.weights));
        CHECK(same_bits(cut.predictions, whole.predictions));
        CHECK(cut.evaluation.loss == whole.evaluation.loss);
        CHECK(cut.evaluation.num_samples == 250);
      }
  };
  check(residual_network(3), 36,
        {{"block2.conv1"}, {"block1.conv2", "downsample", "block2.conv1", "block2.conv2", "head"}});
  check(small_unet(3), 64, {{"bottom", "grow2"}, {"down2", "bottom", "grow2", "grow1"}});
}

TEST_CASE("a graph's weights go from a job into a file, a plain model, and a job with other stages") {
  temp_folder folder;
  auto file = folder.path() / "model.safetensors";
  auto samples = images(64);
  tensor predictions;
  {
    Trainer trainer(World::local(2, options_of(9)), graph_pipeline(small_unet(3), {"bottom", "up1"}));
    trainer.fit(samples);
    trainer.save(file);
    predictions = trainer.predict(samples);
  }
  auto model = small_unet(3);
  model.materialize(0);
  model.load_state_dict(read_weights(file));
  model.eval();
  auto plain = model({samples->samples()}).value;
  for (std::size_t i = 0; i < plain.values<float>().size(); ++i)
    CHECK(std::abs(plain.values<float>()[i] - predictions.values<float>()[i]) < 1e-4F);
  // The loaded model begins the job.
  Trainer other(World::local(3, options_of(9)), graph_pipeline(model, {"down2", "grow2"}));
  CHECK(same_bits(other.predict(samples), predictions));
}

TEST_CASE("stages from the command line cut a graph, and are refused beside named cuts") {
  auto options = options_of(3);
  options.stages = 3;
  options.given = {"stages"};
  Trainer trainer(World::local(3, options), Pipeline(residual_network(3), options));
  CHECK(trainer.training_plan().num_stages == 3);
  CHECK(trainer.fit(images(36)).steps == 3);
  CHECK_THROWS_MATCHES(
      Trainer(World::local(2, options), Pipeline(residual_network(3), options).cut_before({"head"})),
      bad_input, MessageMatches(ContainsSubstring("--stages 3 was given")));
}

TEST_CASE("an output that changes its form between microbatches ends the job with its edge") {
  nn::Graph model;
  auto x = model.add("a", nn::Linear(6, 6), model.input());
  auto y = model.add("uneven", Uneven(), x);
  model.output(model.add("b", nn::Linear(6, 3), y));
  Trainer trainer(World::local(2, options_of(3)), graph_pipeline(model, {"b"}));
  CHECK_THROWS_MATCHES(
      trainer.fit(images(6)), job_failed,
      MessageMatches(ContainsSubstring("edge 0.0 -> 1.0") && ContainsSubstring("expected f32[8, 6]") &&
                     ContainsSubstring("got f32[8, 5]")));
}

TEST_CASE("shapes that do not go together name the node") {
  nn::Graph model;
  auto x = model.add("a", nn::Linear(6, 6), model.input());
  auto sum = model.add("sum", nn::Add(), x, model.add("b", nn::Linear(6, 5), x));
  model.output(model.add("c", nn::Linear(5, 3), sum));
  Trainer trainer(World::local(2, options_of(3)), graph_pipeline(model, {"b"}));
  CHECK_THROWS_MATCHES(trainer.fit(images(6)), job_failed,
                       MessageMatches(ContainsSubstring("in layer sum: ")));
}
