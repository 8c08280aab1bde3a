// Trains a small model. With --differs one thing in it is another than in the processes without.
#include <troupe/nn/mse_loss.hpp>

#include "package/synthetic.hpp"

using namespace troupe;
using troupe::testing::four_corners;

namespace {

nn::Sequential model_of(std::int64_t width) {
  return nn::Sequential(nn::Linear(2, width), nn::ReLU(), nn::Linear(width, 16), nn::ReLU(),
                        nn::Linear(16, 16), nn::ReLU(), nn::Linear(16, 4));
}

Pipeline pipeline_for(const job_options& options, const std::string& differs) {
  Pipeline pipeline(model_of(differs == "model" ? 17 : 16), options);
  pipeline.optimizer(optim::Adam({.lr = differs == "optimizer" ? 2e-2 : 1e-2}));
  if (differs == "microbatches") pipeline.microbatches(options.microbatches / 2);
  if (differs == "loss") pipeline.loss(nn::CrossEntropy({.label_smoothing = 0.1}));
  return pipeline;
}

/// Other samples of the same number and shape.
dataset_ptr changed(const dataset_ptr& from) {
  auto samples = from->samples().clone();
  samples.values<float>()[0] += 1;
  return std::make_shared<dataset>(labelled_samples{samples, from->labels()});
}

void train(job_options options, const std::string& differs) {
  if (differs == "seed") ++options.seed;
  Trainer trainer(World::init(options), pipeline_for(options, differs));
  auto samples = four_corners(256);
  trainer.fit(differs == "data" ? changed(samples) : samples);
  if (differs == "calls") trainer.evaluate(samples);
  auto hash = trainer.weights_sha256();
  std::printf("weights_sha256 %s\n", hash.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  std::string differs;
  return run_program(argc, argv, testing::small_options(),
                     [&](const job_options& options) { train(options, differs); },
                     {{"--differs", "microbatches, loss, optimizer, seed, model, data or calls", &differs}});
}
