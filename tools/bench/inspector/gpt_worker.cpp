#include "bench/inspector/gpt_worker.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/measure/step_clock.hpp"
#include "troupe/config/command_line.hpp"
#include "troupe/data/dataset.hpp"
#include "troupe/nn/cross_entropy.hpp"
#include "troupe/nn/gpt.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/parallel/pipeline.hpp"
#include "troupe/trainer.hpp"

namespace troupe::bench {
namespace {

/// The first steps allocate and load.
constexpr std::size_t num_warm_up_steps = 3;

labelled_samples make_text(std::int64_t num_sequences, std::int64_t context) {
  auto tokens = tensor::empty({num_sequences, context}, dtype::u8);
  auto labels = tensor::empty({num_sequences, context}, dtype::u8);
  auto in = tokens.values<std::uint8_t>(), out = labels.values<std::uint8_t>();
  for (std::size_t i = 0; i < in.size(); ++i) {
    in[i] = static_cast<std::uint8_t>(i * 7 % 251);
    out[i] = static_cast<std::uint8_t>((i + 1) * 7 % 251);
  }
  return {tokens, labels};
}

void train(const job_options& options) {
  nn::gpt_options size;
  auto samples = std::make_shared<dataset>(shape{options.batch, size.context},
                                           [&] { return make_text(options.batch, size.context); });
  auto pipeline = Pipeline(nn::gpt_layers(size), options).loss(nn::CrossEntropy()).optimizer(optim::AdamW());
  std::vector<step_moment> ends;
  Trainer trainer(World::init(options), pipeline,
                  {.on_step = [&](const step_event&) { ends.push_back(step_moment::now()); }});
  trainer.fit(samples);
  auto hash = trainer.weights_sha256();
  if (ends.size() <= num_warm_up_steps + 1) return;  // another rank, or too few steps to time
  timed_steps timed;
  timed.add({ends.begin() + num_warm_up_steps, ends.end()});
  nlohmann::ordered_json line{{"event", "trained"}, {"step_s", timed.median_s()}, {"weights_sha256", hash}};
  std::printf("%s\n", line.dump().c_str());
}

}  // namespace

void add_gpt_worker(const bench_commands& to) {
  auto options = std::make_shared<job_options>();
  auto* command = to.workers.add_subcommand("gpt", "Train a GPT on made-up text");
  add_job_options(*command, *options);
  command->callback([options] { train(*options); });
}

}  // namespace troupe::bench
