// Trains four steps over two stages. An action of the first stage, a forward of step 2, takes so many
// seconds. Prints lines "RANK KEY VALUE": `process` with its pid, and `weights`.
//
//   long_action_worker SECONDS [options]
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "package/synthetic.hpp"

using namespace troupe;

namespace {

std::chrono::seconds action_takes{0};

/// The identity; once in this process it sleeps.
class slow_once : public nn::module_of<slow_once> {
 public:
  variable forward(const variable& x) override {
    auto [step, microbatch] = current_pass().id;
    static std::atomic<bool> has_slept = false;
    if (step == 2 && microbatch == 1 && !has_slept.exchange(true)) std::this_thread::sleep_for(action_takes);
    return x;
  }
};

void train(const job_options& options) {
  auto world = World::init(options);
  auto rank = world.rank().value();
  std::printf("%d process %d\n", rank, ::getpid());
  std::fflush(stdout);
  nn::Sequential model(nn::Linear(2, 16), slow_once(), nn::Linear(16, 4));
  auto pipeline = Pipeline(model, options).stages(2).microbatches(4).optimizer(optim::Adam({.lr = 0.01}));
  Trainer trainer(world, pipeline);
  trainer.fit(testing::four_corners(128));
  auto weights = trainer.weights_sha256();
  std::printf("%d weights %s\n", rank, weights.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 99;
  action_takes = std::chrono::seconds(std::atoi(argv[1]));
  job_options defaults;
  defaults.batch = 32;
  defaults.epochs = 1;
  return run_program(argc - 1, argv + 1, defaults, train);
}
