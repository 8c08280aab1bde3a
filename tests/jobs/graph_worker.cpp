// A job that trains a U-Net, whose skip connections go past stages, and says what came of it, a line each:
// "RANK WHAT HASH".
#include <troupe/snapshot/weights_hash.hpp>

#include "package/synthetic.hpp"
#include "support/graph_models.hpp"
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

void run(const job_options& options, bool is_cut) {
  auto pipeline = Pipeline(testing::small_unet(3), options).optimizer(optim::Adam({.lr = 1e-2}));
  if (is_cut) pipeline.cut_before({"down2", "bottom", "grow2"});
  auto world = World::init(options);
  Trainer trainer(world, pipeline);
  auto say = [&](const char* what, const std::string& value) {
    std::printf("%d %s %s\n", world.rank().value(), what, value.c_str());
    std::fflush(stdout);
  };
  auto samples = images();
  say("steps", std::to_string(trainer.fit(samples).steps));
  say("loss", std::to_string(trainer.evaluate(samples).loss));
  say("weights", trainer.weights_sha256());
  say("state", weights_sha256(trainer.state_dict()));
  say("outputs", weights_sha256({{"outputs", trainer.predict(samples)}}));
}

}  // namespace

int main(int argc, char** argv) {
  std::string cut = "yes";
  return run_program(argc, argv, testing::small_options(),
                     [&](const job_options& options) { run(options, cut == "yes"); },
                     {{"--cut", "yes: at named nodes", &cut}});
}
