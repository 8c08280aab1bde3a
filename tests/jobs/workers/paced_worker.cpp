// A job that tests ask and attack while it trains. It trains slowly until a file appears, so that it does not
// end before the tests are done with it, and then to its end. Says its weights: "weights SHA256".
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "package/synthetic.hpp"

using namespace troupe;
using namespace std::chrono_literals;

namespace {

/// y = x, after some time while the file is missing.
class Paced : public nn::Module {
 public:
  explicit Paced(std::string until) : until_(std::move(until)) {}
  variable forward(const variable& input) override {
    if (!std::filesystem::exists(until_)) std::this_thread::sleep_for(5ms);
    return input;
  }
  std::shared_ptr<nn::Module> clone() const override { return std::make_shared<Paced>(*this); }

 private:
  std::string until_;
};

void train(const job_options& options, const std::string& until) {
  nn::Sequential model(nn::Linear(2, 16), nn::ReLU(), Paced(until), nn::Linear(16, 16), nn::ReLU(),
                       Paced(until), nn::Linear(16, 16), nn::ReLU(), Paced(until), nn::Linear(16, 4));
  auto world = World::init(options);
  Trainer trainer(world, Pipeline(model, options).optimizer(optim::Adam({.lr = 1e-2})));
  auto samples = testing::four_corners(1024);
  trainer.fit(samples);
  auto weights = trainer.weights_sha256();
  if (world.rank() == 0) std::printf("weights %s\n", weights.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  std::string until = "/";
  return run_program(argc, argv, testing::small_options(),
                     [&](const job_options& options) { train(options, until); },
                     {{"--until", "file at whose appearance the job trains on at full speed", &until}});
}
