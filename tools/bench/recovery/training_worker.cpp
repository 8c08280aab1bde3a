// A small training job that needs no data set: an MLP of 1 MiB in four comparable blocks, on samples made
// from their numbers.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/benches.hpp"
#include "bench/recovery/kept_groups.hpp"
#include "troupe/config/command_line.hpp"
#include "troupe/data/dataset.hpp"
#include "troupe/nn/activation.hpp"
#include "troupe/nn/cross_entropy.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/nn/to_float.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/pipeline/pipeline.hpp"
#include "troupe/random/philox.hpp"
#include "troupe/trainer.hpp"

namespace troupe::bench {
namespace {

constexpr std::int64_t num_samples = 8192, width = 256, num_labels = 10;

/// Noise with a label hidden in it: the brightest of the first ten bytes.
labelled_samples make_samples() {
  labelled_samples made{tensor::empty({num_samples, width}, dtype::u8),
                        tensor::empty({num_samples}, dtype::u8)};
  auto bytes = made.samples.values<std::uint8_t>();
  auto labels = made.labels.values<std::uint8_t>();
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    auto words = philox4x32({static_cast<std::uint32_t>(i), 0, 0, 0}, {1, 2});
    for (std::size_t k = 0; k < 4; ++k) bytes[i + k] = static_cast<std::uint8_t>(words[k]);
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    auto* first = &bytes[i * width];
    labels[i] = static_cast<std::uint8_t>(std::max_element(first, first + num_labels) - first);
  }
  return made;
}

struct worker_options {
  job_options job;
  int num_groups = 0;
};

void train(const worker_options& given) {
  const auto& options = given.job;
  auto samples = std::make_shared<dataset>(shape{num_samples, width}, make_samples);
  nn::Sequential model(nn::ToFloat(),                         //
                       nn::Linear(width, width), nn::ReLU(),  //
                       nn::Linear(width, width), nn::ReLU(),  //
                       nn::Linear(width, width), nn::ReLU(),  //
                       nn::Linear(width, width), nn::ReLU(), nn::Linear(width, num_labels));
  auto pipeline =
      Pipeline(model, options).loss(nn::CrossEntropy()).optimizer(optim::Adam({.lr = options.learning_rate}));
  auto world = World::init(options);
  kept_groups groups(world, given.num_groups);
  Trainer trainer(world, pipeline);
  auto fitted = trainer.fit(samples);
  auto hash = trainer.weights_sha256();
  if (world.rank() != 0) return;
  nlohmann::ordered_json done{{"event", "done"},
                              {"weights_sha256", hash},
                              {"steps", fitted.steps},
                              {"loss", fitted.loss},
                              {"step_s", fitted.step_s}};
  std::printf("%s\n", done.dump().c_str());
}

}  // namespace

void add_training_worker(const bench_commands& to) {
  auto options = std::make_shared<worker_options>();
  auto* command = to.workers.add_subcommand("train", "Train a small model on made-up samples");
  command->add_option("--groups", options->num_groups, "Groups of all processes with a call under way");
  config::add_job_options(*command, options->job);
  command->callback([options] { train(*options); });
}

}  // namespace troupe::bench
