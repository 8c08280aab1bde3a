// A job that trains a U-Net, whose skip connections go past stages, and says what came of it, a line each:
// "RANK WHAT HASH". With --model another one, in two fits with an evaluation between: "modes", which has
// layers in evaluation mode, or one of ungraded_models.hpp.
#include <troupe/snapshot/weights_hash.hpp>

#include "package/synthetic.hpp"
#include "support/models/graph_models.hpp"
#include "support/models/models_with_modes.hpp"
#include "support/models/ungraded_models.hpp"
#include "support/random_tensor.hpp"

using namespace troupe;

namespace {

/// 204 images of 3 classes.
dataset_ptr images() {
  constexpr std::int64_t count = 204;
  std::vector<std::int64_t> classes;
  for (std::int64_t row = 0; row < count; ++row) classes.push_back(row * row % 3);
  return std::make_shared<dataset>(
      labelled_samples{testing::random_tensor({count, 64}, "images"), tensor::from(classes, {count})});
}

struct trained_model {
  nn::Graph model;
  std::vector<std::string> cuts;
  dataset_ptr samples;
  int num_fits = 1;
};

trained_model model_named(const std::string& name) {
  if (name == "unet") return {testing::small_unet(3), {"down2", "bottom", "grow2"}, images()};
  if (name == "modes") return {testing::model_with_modes(), {"2", "4", "5"}, testing::four_corners(204), 2};
  return {testing::ungraded_model(name), {"second", "third", "fourth"}, testing::token_rows(204), 2};
}

void run(const job_options& options, const std::string& model, bool is_cut) {
  auto trained = model_named(model);
  auto pipeline = Pipeline(trained.model, options).optimizer(optim::Adam({.lr = 1e-2}));
  if (is_cut) pipeline.cut_before(trained.cuts);
  auto world = World::init(options);
  Trainer trainer(world, pipeline);
  auto say = [&](const char* what, const std::string& value) {
    std::printf("%d %s %s\n", world.rank().value(), what, value.c_str());
    std::fflush(stdout);
  };
  for (int fit = 1; fit < trained.num_fits; ++fit) {
    trainer.fit(trained.samples);
    trainer.evaluate(trained.samples);
  }
  say("steps", std::to_string(trainer.fit(trained.samples).steps));
  say("loss", std::to_string(trainer.evaluate(trained.samples).loss));
  say("weights", trainer.weights_sha256());
  say("state", weights_sha256(trainer.state_dict()));
  say("outputs", weights_sha256({{"outputs", trainer.predict(trained.samples)}}));
}

}  // namespace

int main(int argc, char** argv) {
  std::string cut = "yes", model = "unet";
  return run_program(argc, argv, testing::small_options(),
                     [&](const job_options& options) { run(options, model, cut == "yes"); },
                     {{"--cut", "yes: at named processes", &cut}, {"--model", "what is trained", &model}});
}
