// A job in which every process asks for the model: trains, takes the weights, predictions and a file, trains
// on, and does the same with another model. Says what it got, a line each: "RANK WHAT HASH".
#include <troupe/snapshot/weights_hash.hpp>

#include "package/synthetic.hpp"

using namespace troupe;
using troupe::testing::four_corners;

namespace {

nn::Sequential model_of(std::int64_t width) {
  return nn::Sequential(nn::Linear(2, width), nn::ReLU(), nn::Linear(width, 16), nn::ReLU(),
                        nn::Linear(16, 16), nn::ReLU(), nn::Linear(16, 4));
}

Pipeline pipeline_of(std::int64_t width, const job_options& options) {
  return Pipeline(model_of(width), options).optimizer(optim::Adam({.lr = 1e-2}));
}

class program {
 public:
  program(const job_options& options, std::string file, std::uint64_t cancel_at, bool calls_within)
      : world_(World::init(options)),
        file_(std::move(file)),
        cancel_at_(cancel_at),
        calls_within_(calls_within) {}

  void run() {
    {
      Trainer trainer(world_, pipeline_of(16, world_.options()), callbacks());
      running_ = &trainer;
      train_and_take(trainer, "first");
      train_and_take(trainer, "second");
      // All but rank 0 only take part.
      say("saved", saves(trainer));
    }
    Trainer trainer(world_, pipeline_of(24, world_.options()));
    train_and_take(trainer, "other");
  }

 private:
  trainer_callbacks callbacks() {
    trainer_callbacks made;
    made.on_step = [this](const step_event& event) {
      if (event.step == cancel_at_) event.cancel();
      if (calls_within_) try_call("on_step");
    };
    made.on_recovered = [this](const recovery_event&) {
      if (calls_within_) try_call("on_recovered");
    };
    return made;
  }

  /// Within a callback.
  void try_call(const std::string& callback) {
    try {
      running_->state_dict();
      say("within-" + callback, "done");
    } catch (const std::logic_error& problem) {
      say("within-" + callback,
          std::string(problem.what()).find("callback " + callback + " of") != std::string::npos ? "refused"
                                                                                                : "other");
    }
  }

  void train_and_take(Trainer& trainer, const std::string& name) {
    auto steps = trainer.fit(samples_).steps;
    say(name + "-steps", std::to_string(steps));
    auto weights = weights_sha256(trainer.state_dict());
    say(name + "-state", weights);
    say(name + "-outputs", weights_sha256({{"outputs", trainer.predict(samples_)}}));
    if (weights != trainer.weights_sha256()) throw std::runtime_error("the state is another one");
  }

  std::string saves(Trainer& trainer) {
    if (file_.empty()) return "no";
    try {
      trainer.save(file_);
      return weights_sha256(read_weights(file_));
    } catch (const bad_input&) {
      return "refused";
    }
  }

  void say(const std::string& what, const std::string& value) {
    std::printf("%d %s %s\n", world_.rank().value(), what.c_str(), value.c_str());
    std::fflush(stdout);
  }

  World world_;
  std::string file_;
  std::uint64_t cancel_at_;
  bool calls_within_;
  Trainer* running_ = nullptr;
  dataset_ptr samples_ = four_corners(1100);
};

}  // namespace

int main(int argc, char** argv) {
  std::string file, cancel_at = "0", calls_within = "no";
  return run_program(argc, argv, testing::small_options(),
                     [&](const job_options& options) {
                       program(options, file, std::stoull(cancel_at), calls_within == "yes").run();
                     },
                     {{"--file", "where rank 0 saves the model", &file},
                      {"--cancel-at", "step at which rank 0 cancels the training", &cancel_at},
                      {"--calls-within", "yes: callbacks call state_dict", &calls_within}});
}
