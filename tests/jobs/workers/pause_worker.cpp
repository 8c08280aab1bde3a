// A job that one of its processes pauses and takes further by single steps, while others are killed. Says
// what it got, a line each: "RANK WHAT VALUE".
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "package/synthetic.hpp"
#include "troupe/config/environment/launch_environment.hpp"

using namespace troupe;
using namespace std::chrono_literals;
using troupe::testing::four_corners;

namespace {

struct worker_options {
  std::string control_rank = "-1";  ///< the rank that pauses the job; -1: none
  std::string kill_rank = "-1";     ///< the rank that kills itself while the job stands within a step
  std::string hold_ms = "0";        ///< how long the job stands in the end
};

Pipeline pipeline_of(const job_options& options) {
  nn::Sequential model(nn::Linear(2, 16), nn::ReLU(), nn::Linear(16, 16), nn::ReLU(), nn::Linear(16, 16),
                       nn::ReLU(), nn::Linear(16, 4));
  return Pipeline(model, options).optimizer(optim::Adam({.lr = 1e-2}));
}

bool is_within_step(const pause_status& seen) {
  for (const auto& position : seen.stop.devices)
    if (position.action > 0) return true;
  return false;
}

class control {
 public:
  /// `stay`: how long the job stands after each command.
  control(Trainer& trainer, const std::atomic<bool>& over, std::chrono::milliseconds stay)
      : trainer_(trainer), over_(over), stay_(stay) {}

  void run(std::chrono::milliseconds hold) {
    give([&] { trainer_.pause(); });
    std::array units = {step_unit::action, step_unit::microbatch, step_unit::step};
    std::array<std::uint64_t, 12> counts = {2, 1, 2, 7, 1, 1, 3, 2, 1, 11, 3, 1};
    for (std::size_t i = 0; i < counts.size(); ++i) give([&] { trainer_.step(units[i % 3], counts[i]); });
    std::this_thread::sleep_for(hold);
    trainer_.resume();
  }

  /// Kills this process when the job stands within a step.
  void kill_process() {
    while (!over_) {
      auto seen = trainer_.pause_status();
      if (seen.is_standing && is_within_step(seen)) ::kill(::getpid(), SIGKILL);
      std::this_thread::sleep_for(1ms);
    }
  }

 private:
  /// Waits until the job stands where the command led to.
  template <class Command>
  void give(Command command) {
    auto before = trainer_.pause_status().num_changes;
    command();
    for (; !over_; std::this_thread::sleep_for(1ms)) {
      auto seen = trainer_.pause_status();
      if (seen.num_changes <= before || !seen.is_standing) continue;
      std::this_thread::sleep_for(stay_);
      return;
    }
  }

  Trainer& trainer_;
  const std::atomic<bool>& over_;
  std::chrono::milliseconds stay_;
};

void run(const job_options& options, const worker_options& worker) {
  auto world = World::init(options);
  Trainer trainer(world, pipeline_of(world.options()));
  std::atomic<bool> over = false;
  // The process that kills itself must see the job stand within a step, also on a busy machine.
  control controls(trainer, over, worker.kill_rank == "-1" ? 20ms : 200ms);
  auto rank = std::to_string(world.rank().value());
  auto launched = read_launch_environment(process_environment());
  bool is_first = !launched || launched->incarnation == 0;
  std::jthread controller([&] {
    if (rank == worker.control_rank) controls.run(std::chrono::milliseconds(std::stoi(worker.hold_ms)));
  });
  std::jthread victim([&] {
    if (rank == worker.kill_rank && is_first) controls.kill_process();
  });
  auto samples = four_corners(1100);
  auto steps = trainer.fit(samples).steps;
  auto loss = trainer.evaluate(samples).loss;
  over = true;
  std::printf("%d steps %llu\n", world.rank().value(), static_cast<unsigned long long>(steps));
  std::printf("%d loss %.17g\n", world.rank().value(), loss);
  std::printf("%d weights %s\n", world.rank().value(), trainer.weights_sha256().c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  worker_options worker;
  return run_program(argc, argv, testing::small_options(),
                     [&](const job_options& options) { run(options, worker); },
                     {{"--control-rank", "rank that pauses the job", &worker.control_rank},
                      {"--kill-rank", "rank that kills itself while the job stands", &worker.kill_rank},
                      {"--hold-ms", "how long the job stands in the end", &worker.hold_ms}});
}
