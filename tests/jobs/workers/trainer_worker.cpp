// A job in which every process asks for the model: trains, takes the weights, predictions and a file, trains
// on, and does the same with another model. Says what it got, a line each: "RANK WHAT HASH".
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
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

class trainer_program {
 public:
  trainer_program(const job_options& options, std::string file, std::uint64_t cancel_at, bool calls_within,
                  bool takes_latest)
      : world_(World::init(options)),
        file_(std::move(file)),
        cancel_at_(cancel_at),
        calls_within_(calls_within),
        takes_latest_(takes_latest) {}

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
    try_call(callback, [this] { running_->state_dict(); });
    try_call(callback, [this] { world_.default_group(); });
  }
  void try_call(const std::string& callback, const std::function<void()>& call) {
    try {
      call();
      say("within-" + callback, "done");
    } catch (const std::logic_error& problem) {
      say("within-" + callback,
          std::string(problem.what()).find("callback " + callback + " of") != std::string::npos ? "refused"
                                                                                                : "other");
    }
  }

  void train_and_take(Trainer& trainer, const std::string& name) {
    auto steps = fit(trainer, name);
    say(name + "-steps", std::to_string(steps));
    auto weights = weights_sha256(trainer.state_dict());
    say(name + "-state", weights);
    say(name + "-outputs", weights_sha256({{"outputs", trainer.predict(samples_)}}));
    if (weights != trainer.weights_sha256()) throw std::runtime_error("the state is another one");
  }

  std::uint64_t fit(Trainer& trainer, const std::string& name) {
    if (!takes_latest_) return trainer.fit(samples_).steps;
    std::atomic<bool> is_over = false;
    std::thread other([&] { take_latest(trainer, name, is_over); });
    auto steps = trainer.fit(samples_).steps;
    is_over = true;
    other.join();
    return steps;
  }

  /// All that there are while fit runs, and then once more.
  void take_latest(const Trainer& trainer, const std::string& name, const std::atomic<bool>& is_over) {
    std::optional<std::uint64_t> last;
    try {
      for (bool is_last = false; !is_last; std::this_thread::yield()) {
        is_last = is_over;
        auto latest = trainer.latest_weights();
        if (latest && last && latest->step < *last) say(name + "-latest", "went back");
        if (latest && latest->step != last)
          say(name + "-latest-" + std::to_string(latest->step), weights_sha256(latest->weights));
        if (latest) last = latest->step;
      }
    } catch (const std::logic_error& problem) {
      say(name + "-latest", problem.what());
    }
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
  bool calls_within_, takes_latest_;
  Trainer* running_ = nullptr;
  dataset_ptr samples_ = four_corners(1100);
};

/// Within a callback the Trainer ends whose fit runs.
void destroy_within(const job_options& options) {
  std::unique_ptr<Trainer> trainer;
  trainer_callbacks callbacks;
  callbacks.on_step = [&](const step_event&) { trainer.reset(); };
  trainer = std::make_unique<Trainer>(World::init(options), pipeline_of(16, options), callbacks);
  trainer->fit(four_corners(1100));
}

std::string outcome_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const bad_input&) {
    return "refused";
  }
  return "done";
}

/// Evaluates and predicts no samples, and then trains.
void ask_of_none(const job_options& options) {
  auto world = World::init(options);
  Trainer trainer(world, pipeline_of(16, options));
  auto none =
      std::make_shared<dataset>(labelled_samples{tensor::empty({0, 2}), tensor::empty({0}, dtype::u8)});
  auto evaluated = outcome_of([&] { trainer.evaluate(none); });
  auto predicted = outcome_of([&] { trainer.predict(none); });
  trainer.fit(four_corners(1100));
  auto state = weights_sha256(trainer.state_dict());
  std::printf("%d evaluated-none %s\n%d predicted-none %s\n%d first-state %s\n", world.rank().value(),
              evaluated.c_str(), world.rank().value(), predicted.c_str(), world.rank().value(),
              state.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  std::string file, cancel_at = "0", calls_within = "no", latest = "no", destroys = "no", none = "no";
  return run_program(
      argc, argv, testing::small_options(),
      [&](const job_options& options) {
        if (destroys == "yes") return destroy_within(options);
        if (none == "yes") return ask_of_none(options);
        trainer_program(options, file, std::stoull(cancel_at), calls_within == "yes", latest == "yes").run();
      },
      {{"--file", "where rank 0 saves the model", &file},
       {"--cancel-at", "step at which rank 0 cancels the training", &cancel_at},
       {"--calls-within", "yes: callbacks call state_dict", &calls_within},
       {"--none", "yes: evaluate and predict get no samples", &none},
       {"--destroys", "yes: a callback destroys its Trainer", &destroys},
       {"--latest", "yes: a thread takes the latest weights while fit runs", &latest}});
}
