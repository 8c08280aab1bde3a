#include "bench/benches.hpp"

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
#include "troupe/pipeline/pipeline.hpp"
#include "troupe/trace/recording.hpp"
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

/// Events that the threads of this process have recorded.
std::uint64_t num_events() {
  auto* segment = trace::recording_segment();
  if (!segment) return 0;
  std::uint64_t num = 0;
  for (std::size_t ring = 0; ring < segment->layout().size().num_rings; ++ring)
    num += segment->layout().ring_at(ring).count;
  return num;
}

/// Nanoseconds that it takes to record one event, with the time that it happened.
double event_ns() {
  constexpr int repeats = 100'000;
  auto begin = step_moment::now();
  for (int i = 0; i < repeats; ++i) trace::emit_now({});
  return 1e9 * (step_moment::now().wall_s - begin.wall_s) / repeats;
}

void train(const job_options& options) {
  nn::gpt_options size;
  auto samples = std::make_shared<dataset>(shape{options.batch, size.context},
                                           [&] { return make_text(options.batch, size.context); });
  auto pipeline = Pipeline(nn::gpt_layers(size), options).loss(nn::CrossEntropy()).optimizer(optim::AdamW());
  std::vector<step_moment> ends;
  std::uint64_t first_events = 0;
  Trainer trainer(World::init(options), pipeline, {.on_step = [&](const step_event&) {
                    if (ends.empty()) first_events = num_events();
                    ends.push_back(step_moment::now());
                  }});
  trainer.fit(samples);
  auto last_events = num_events();
  auto hash = trainer.weights_sha256();
  if (ends.size() <= num_warm_up_steps + 1) return;  // another rank, or too few steps to time
  timed_steps timed;
  timed.add({ends.begin() + num_warm_up_steps, ends.end()});
  nlohmann::ordered_json line{{"event", "trained"},
                              {"step_s", timed.median_s()},
                              {"events_per_step", static_cast<double>(last_events - first_events) /
                                                      static_cast<double>(ends.size() - 1)},
                              {"event_ns", event_ns()},
                              {"weights_sha256", hash}};
  std::printf("%s\n", line.dump().c_str());
}

}  // namespace

void add_gpt_worker(const bench_commands& to) {
  auto options = std::make_shared<job_options>();
  auto* command = to.workers.add_subcommand("gpt", "Train a GPT on made-up text");
  config::add_job_options(*command, *options);
  command->callback([options] { train(*options); });
}

}  // namespace troupe::bench
