// A service that trains while it answers requests: no launcher, no port, no file, and no signal handler of
// Troupe's.
#include <atomic>
#include <csignal>
#include <future>
#include <iostream>
#include <thread>
#include <troupe/job_error/job_errors.hpp>
#include <troupe/troupe.hpp>

using namespace troupe;

namespace {

/// Points [count, 2] around the corners of a square; the label is the corner.
dataset_ptr corners(std::int64_t count) {
  std::vector<float> points;
  std::vector<std::uint8_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    auto shift = static_cast<float>(i * 7919 % count) / static_cast<float>(count) - 0.5F;
    points.push_back((i & 1 ? 1.0F : -1.0F) + shift);
    points.push_back((i & 2 ? 1.0F : -1.0F) - shift);
    labels.push_back(static_cast<std::uint8_t>(i % 4));
  }
  return std::make_shared<dataset>(
      labelled_samples{tensor::from(points, {count, 2}), tensor::from(labels, {count})});
}

/// A layer that fails once its input has been removed.
class Sensor : public nn::module_of<Sensor> {
 public:
  explicit Sensor(std::shared_ptr<std::atomic<bool>> is_there) : is_there_(std::move(is_there)) {}
  variable forward(const variable& x) override {
    if (!*is_there_) throw std::runtime_error("the sensor is unplugged");
    return x;
  }

 private:
  std::shared_ptr<std::atomic<bool>> is_there_;
};

job_options service_options() {
  job_options options;
  options.batch = 32;
  options.epochs = 100'000;  // until it is stopped
  options.log_level = "off";
  return options;
}

/// Trains on a thread of its own until it is stopped or fails; says how it ended.
std::string train(World world, const std::shared_ptr<std::atomic<bool>>& sensor,
                  std::atomic<std::uint64_t>& steps_done) {
  nn::Sequential model(nn::Linear(2, 16), Sensor(sensor), nn::ReLU(), nn::Linear(16, 4));
  auto pipeline = Pipeline(model).stages(2).microbatches(4).optimizer(optim::Adam({.lr = 1e-2}));
  Trainer trainer(std::move(world), pipeline,
                  {.on_step = [&](const step_event& event) { steps_done = event.step; }});
  try {
    trainer.fit(corners(256));
    return "finished";
  } catch (const job_stopped& stopped) {
    return stopped.what();
  } catch (const job_failed& failure) {
    return std::string("failed: ") + failure.what();
  }
}

/// What a service does: answers, here by saying how far the training is.
void answer_requests(const std::atomic<std::uint64_t>& steps_done) {
  for (std::uint64_t request = 1; request <= 3; ++request) {
    while (steps_done < 10 * request) std::this_thread::yield();
    std::cout << "request " << request << ": at least " << 10 * request << " steps are done\n";
  }
}

}  // namespace

int main() {
  for (bool is_unplugged : {false, true}) {
    auto sensor = std::make_shared<std::atomic<bool>>(true);
    std::atomic<std::uint64_t> steps_done = 0;
    auto world = World::local(2, service_options());
    auto training = std::async(std::launch::async, train, world, sensor, std::ref(steps_done));
    answer_requests(steps_done);
    if (is_unplugged)
      *sensor = false;
    else
      world.request_stop(SIGTERM);  // as the service's own signal handling would
    std::cout << training.get() << '\n';
  }
}
