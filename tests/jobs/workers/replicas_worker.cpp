// A job of replicas with one of these (--model):
// - conditional: some weights are used in some microbatches only.
// - sync_batch_norm: statistics of all replicas; sometimes_normed: some replicas do not compute them.
// - wide: a weight whose gradient is computed by blocks of rows. Says whether it reads those of others in
// place.
// - partly_labelled: samples of which some have no label.
// - three_trainers: three Trainers of one World, one after the other, whose stages lie on other processes;
// the first one only evaluates.
//
// Says what came of it, a line each: "RANK WHAT VALUE".
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

#include "package/synthetic.hpp"
#include "support/models/conditional_model.hpp"
#include "support/models/partly_labelled.hpp"
#include "troupe/collective/every_backend.hpp"
#include "troupe/snapshot/weights_hash.hpp"

using namespace troupe;

namespace {

nn::Sequential normed_model() {
  return nn::Sequential(nn::Linear(2, 16), nn::Reshape({4, 2, 2}), nn::SyncBatchNorm(4), nn::Conv2d(4, 4, 1),
                        nn::SyncBatchNorm(4), nn::Flatten(), nn::ReLU(), nn::Linear(16, 4));
}

/// Normalises only where the first number that comes in is positive.
class sometimes_normed : public nn::module_of<sometimes_normed> {
 public:
  variable forward(const variable& input) override {
    return input.value.values<float>()[0] > 0 ? norm.forward(input) : input;
  }
  void each_child(const child_visitor& visit) override { visit("norm", norm); }
  nn::SyncBatchNorm norm{4};
};

nn::Sequential model_named(const std::string& name) {
  if (name == "conditional") return testing::conditional_model();
  if (name == "sync_batch_norm") return normed_model();
  if (name == "partly_labelled")
    return nn::Sequential(nn::Linear(2, 16), nn::ReLU(), nn::Linear(16, 16), nn::ReLU(), nn::Linear(16, 16),
                          nn::ReLU(), nn::Linear(16, 4));
  if (name == "wide")
    return nn::Sequential(nn::Linear(2, 1100), nn::ReLU(), nn::Linear(1100, 1100), nn::ReLU(),
                          nn::Linear(1100, 4));
  if (name == "sometimes_normed")
    return nn::Sequential(nn::Reshape({2, 1, 1}), nn::Conv2d(2, 4, 1), sometimes_normed(), nn::Flatten(),
                          nn::Linear(4, 4));
  throw bad_input("there is no model '" + name + "'");
}

/// Whether this process reads memory of others.
bool reads_in_place() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(" r--s ") != std::string::npos && line.find("memfd:troupe-") != std::string::npos)
      return true;
  return false;
}

void run(const std::string& model, const job_options& options) {
  auto pipeline = Pipeline(model_named(model), options).optimizer(optim::Adam({.lr = 1e-2}));
  auto world = World::init(options, every_backend());
  auto rank = world.rank().value();
  auto samples = model == "partly_labelled" ? testing::partly_labelled(250) : testing::four_corners(250);
  Trainer trainer(world, pipeline, {.on_step = [rank](const step_event& done) {
                    std::printf("%d loss-%" PRIu64 " %a\n", rank, done.step, done.loss);
                  }});
  std::printf("%d last-loss %a\n", rank, trainer.fit(samples).loss);
  if (model == "wide") std::printf("%d in-place %s\n", rank, reads_in_place() ? "yes" : "no");
  auto evaluated = trainer.evaluate(samples);
  std::printf("%d evaluated %a,%a,%" PRId64 "\n", rank, evaluated.loss, evaluated.accuracy,
              evaluated.num_samples);
  auto predicted = trainer.predict(samples);
  std::printf("%d predicted %s\n", rank, weights_sha256({{"outputs", predicted}}).c_str());
  std::printf("%d weights %s\n", rank, trainer.weights_sha256().c_str());
  std::fflush(stdout);
}

void run_three_trainers(const job_options& options) {
  struct layout {
    int stages, replicas;
  };
  auto world = World::init(options, every_backend());
  auto samples = testing::four_corners(250);
  int number = 0;
  for (const auto& [stages, replicas] : {layout{2, 2}, layout{1, 4}, layout{2, 2}}) {
    auto pipeline = Pipeline(testing::conditional_model(), options)
                        .stages(stages)
                        .replicas(replicas)
                        .optimizer(optim::Adam({.lr = 1e-2}));
    Trainer trainer(world, pipeline);
    if (++number > 1) trainer.fit(samples);
    std::printf("%d evaluated-%d %a\n", world.rank().value(), number, trainer.evaluate(samples).loss);
    std::printf("%d weights-%d %s\n", world.rank().value(), number, trainer.weights_sha256().c_str());
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::string model;
  return run_program(
      argc, argv, testing::small_options(),
      [&](const job_options& options) {
        model == "three_trainers" ? run_three_trainers(options) : run(model, options);
      },
      {{"--model", "conditional, sync_batch_norm, sometimes_normed, wide, partly_labelled or three_trainers",
        &model}});
}
