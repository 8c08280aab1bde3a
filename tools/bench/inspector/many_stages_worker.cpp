#include "bench/benches.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "bench/measure/step_clock.hpp"
#include "troupe/config/command_line.hpp"
#include "troupe/data/dataset.hpp"
#include "troupe/nn/cross_entropy.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/pipeline/pipeline.hpp"
#include "troupe/trainer.hpp"

namespace troupe::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t width = 4;

/// Processor time of the threads of this process with that name, as the kernel counts it (in ticks of 10 ms).
double processor_s_of_threads(const std::string& name) {
  double ticks = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(thread.path() / "stat");
    std::string text(std::istreambuf_iterator<char>(file), {});
    auto open = text.find('('), close = text.rfind(')');
    if (close == std::string::npos || text.substr(open + 1, close - open - 1) != name) continue;
    std::istringstream rest(text.substr(close + 2));
    std::string skipped;
    for (int field = 3; field < 14; ++field) rest >> skipped;
    double user = 0, system = 0;
    rest >> user >> system;
    ticks += user + system;
  }
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

struct many_stages_options {
  job_options job;
  double window_s = 10;
};

/// Pauses the job of this Trainer between two windows, then ends it.
class window_clock {
 public:
  window_clock(Trainer& trainer, double window_s) : trainer_(trainer), window_s_(window_s) {}

  void run(const std::atomic<std::uint64_t>& steps, std::atomic<bool>& ends) {
    while (steps < 2) std::this_thread::sleep_for(10ms);
    print_window(false);
    trainer_.pause();
    while (!trainer_.pause_status().is_standing) std::this_thread::sleep_for(10ms);
    print_window(true);
    ends = true;
    trainer_.resume();
  }

 private:
  void print_window(bool is_paused) {
    std::this_thread::sleep_for(1s);  // until it is as it stays
    auto begin = step_moment::now();
    auto http_s = processor_s_of_threads("http_server");
    std::this_thread::sleep_for(std::chrono::duration<double>(window_s_));
    auto end = step_moment::now();
    nlohmann::ordered_json line{{"event", "window"},
                                {"is_paused", is_paused},
                                {"begin_s", begin.wall_s},
                                {"end_s", end.wall_s},
                                {"process_s", end.processor_s - begin.processor_s},
                                {"http_s", processor_s_of_threads("http_server") - http_s}};
    std::printf("%s\n", line.dump().c_str());
  }

  Trainer& trainer_;
  double window_s_;
};

void train(const many_stages_options& given) {
  const auto& options = given.job;
  auto samples = std::make_shared<dataset>(shape{options.batch, width}, [&] {
    return labelled_samples{tensor::zeros({options.batch, width}), tensor::zeros({options.batch}, dtype::u8)};
  });
  nn::Sequential model;
  for (int stage = 0; stage < options.stages; ++stage) model.push_back(nn::Linear(width, width));
  auto pipeline = Pipeline(model, options).loss(nn::CrossEntropy()).optimizer(optim::Adam());
  auto world = World::init(options);
  std::atomic<std::uint64_t> steps = 0;
  std::atomic<bool> ends = false;
  Trainer trainer(world, pipeline, {.on_step = [&](const step_event& event) {
                    steps = event.step;
                    if (ends) event.cancel();
                  }});
  std::jthread clock;
  if (world.rank() == 0)
    clock = std::jthread([&] { window_clock(trainer, given.window_s).run(steps, ends); });
  trainer.fit(samples);
}

}  // namespace

void add_many_stages_worker(const bench_commands& to) {
  auto options = std::make_shared<many_stages_options>();
  auto* command = to.workers.add_subcommand("many_stages", "Train a pipeline of many small stages");
  command->add_option("--window", options->window_s, "Seconds that it runs, and that it is paused");
  config::add_job_options(*command, options->job);
  command->callback([options] { train(*options); });
}

}  // namespace troupe::bench
