// A job that makes its steps itself, or has fit make them, of the same batches. Says what came of it, a line
// each: "RANK WHAT VALUE".
#include <unistd.h>

#include <csignal>
#include <troupe/data/detail/training_source.hpp>

#include "package/synthetic.hpp"
#include "troupe/config/environment/launch_environment.hpp"
#include "troupe/snapshot/weights_hash.hpp"

using namespace troupe;

namespace {

struct worker_options {
  std::string by = "steps";       ///< "steps" or "fit": which calls train
  std::string kill_rank = "-1";   ///< which process kills itself between forward_backward and optimizer_step
  std::string kill_step = "5";    ///< the step in which it kills itself
  std::string other_rank = "-1";  ///< which process gives other batches; -1: none
};

Pipeline pipeline_of(const job_options& options) {
  nn::Sequential model(nn::Linear(2, 16), nn::ReLU(), nn::Linear(16, 16), nn::ReLU(), nn::Linear(16, 16),
                       nn::ReLU(), nn::Linear(16, 4));
  return Pipeline(model, options).optimizer(optim::Adam({.lr = 1e-2}));
}

class steps_program {
 public:
  steps_program(const job_options& options, worker_options worker)
      : world_(World::init(options)), worker_(std::move(worker)) {}

  void run() {
    auto samples = testing::four_corners(250);
    auto seed = world_.options().seed + (is_rank(worker_.other_rank) ? 1 : 0);
    auto source = detail::make_training_source(samples, {world_.options().batch, 4, seed});
    Trainer trainer(world_, pipeline_of(world_.options()));
    if (worker_.by == "fit") {
      say("loss", trainer.fit(samples).loss);
    } else {
      double loss = 0;
      for (std::uint64_t step = 0; step < world_.options().steps; ++step)
        loss = make_step(trainer, *source, step);
      say("loss", loss);
    }
    say("weights", trainer.weights_sha256());
    auto outputs = worker_.by == "fit" ? trainer.predict(samples) : trainer.forward({samples->samples(), {}});
    say("outputs", weights_sha256({{"outputs", outputs}}));
  }

 private:
  double make_step(Trainer& trainer, batch_source& source, std::uint64_t step) {
    auto loss = trainer.forward_backward(source.at(step));
    auto launched = read_launch_environment(process_environment());
    bool is_first_life = !launched || launched->incarnation == 0;
    if (is_first_life && is_rank(worker_.kill_rank) && step == std::stoull(worker_.kill_step))
      ::kill(::getpid(), SIGKILL);
    trainer.optimizer_step();
    return loss;
  }

  bool is_rank(const std::string& text) const { return std::stoi(text) == world_.rank().value(); }

  void say(const char* what, const std::string& value) const {
    std::printf("%d %s %s\n", world_.rank().value(), what, value.c_str());
    std::fflush(stdout);
  }
  void say(const char* what, double value) const {
    std::printf("%d %s %a\n", world_.rank().value(), what, value);
    std::fflush(stdout);
  }

  World world_;
  worker_options worker_;
};

}  // namespace

int main(int argc, char** argv) {
  worker_options worker;
  return run_program(argc, argv, testing::small_options(),
                     [&](const job_options& options) { steps_program(options, worker).run(); },
                     {{"--by", "steps or fit", &worker.by},
                      {"--kill-rank", "who kills itself between two calls", &worker.kill_rank},
                      {"--kill-step", "in this step", &worker.kill_step},
                      {"--other-rank", "who gives other batches", &worker.other_rank}});
}
