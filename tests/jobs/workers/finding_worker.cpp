// A job in which one process goes wrong when a file appears, for tests of what the inspector finds:
//
//   finding_worker --wrong straggle|hang|unbalanced|absent --wrong-rank R --trigger FILE
//
// straggle: its stage takes twice as long; hang: it does not return; unbalanced: it takes four times as long
// from the beginning; absent: a program of process groups makes no further call. Stages take their time by
// sleeping, so that how busy the machine is matters little.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "package/synthetic.hpp"

using namespace troupe;
using namespace std::chrono_literals;

namespace {

struct worker_options {
  std::string wrong = "nothing", wrong_rank = "-1", trigger = "/nowhere";

  bool is_triggered() const { return std::filesystem::exists(trigger); }
};

/// y = x, after some time. Stage i has number i, and rank i has stage i.
class Paced : public nn::Module {
 public:
  Paced(int number, worker_options options) : number_(number), options_(std::move(options)) {}
  variable forward(const variable& input) override {
    bool is_wrong = std::to_string(number_) == options_.wrong_rank;
    auto time = 2ms;
    if (is_wrong && options_.wrong == "unbalanced") time = 8ms;
    if (is_wrong && options_.wrong == "straggle" && options_.is_triggered()) time = 4ms;
    std::this_thread::sleep_for(time);
    while (is_wrong && options_.wrong == "hang" && options_.is_triggered()) std::this_thread::sleep_for(1s);
    return input;
  }
  std::shared_ptr<nn::Module> clone() const override { return std::make_shared<Paced>(*this); }

 private:
  int number_;
  worker_options options_;
};

void train(const job_options& options, const worker_options& worker) {
  nn::Sequential model(nn::Linear(2, 16), Paced(0, worker), nn::Linear(16, 16), Paced(1, worker),
                       nn::Linear(16, 16), Paced(2, worker), nn::Linear(16, 4), Paced(3, worker));
  auto world = World::init(options);
  Trainer trainer(world, Pipeline(model, options).optimizer(optim::Adam({.lr = 1e-2})));
  auto samples = testing::four_corners(1100);
  trainer.fit(samples);
}

void sum(const job_options& options, const worker_options& worker) {
  auto world = World::init(options);
  auto group = world.default_group();
  auto x = tensor::zeros({1000});
  bool is_wrong = to_string(world.rank()) == worker.wrong_rank;
  while (true) {
    if (is_wrong && worker.is_triggered()) std::this_thread::sleep_for(1h);
    group.all_reduce(x).wait();
    std::this_thread::sleep_for(2ms);
  }
}

}  // namespace

int main(int argc, char** argv) {
  worker_options worker;
  auto body = [&](const job_options& options) {
    return worker.wrong == "absent" ? sum(options, worker) : train(options, worker);
  };
  return run_program(argc, argv, testing::small_options(), body,
                     {{"--wrong", "what goes wrong", &worker.wrong},
                      {"--wrong-rank", "in which process", &worker.wrong_rank},
                      {"--trigger", "file at whose appearance it begins", &worker.trigger}});
}
