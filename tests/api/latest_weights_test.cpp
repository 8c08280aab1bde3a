// Trainer::latest_weights: the weights while fit runs, for other threads and callbacks.
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "package/synthetic.hpp"
#include "support/temp_folder.hpp"
#include "troupe/snapshot/weights_hash.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr std::uint64_t num_watched_steps = 12;

struct watched_layout {
  int stages = 1, replicas = 1, devices = 1, average_every = 0;
};

Pipeline watched_pipeline(const watched_layout& of) {
  auto pipeline = Pipeline(nn::Sequential(nn::Linear(2, 16), nn::ReLU(), nn::Linear(16, 16), nn::ReLU(),
                                          nn::Linear(16, 4)))
                      .microbatches(2)
                      .stages(of.stages)
                      .replicas(of.replicas)
                      .optimizer(optim::Adam({.lr = 0.01}));
  if (of.average_every != 0) pipeline.average_every(of.average_every);
  return pipeline;
}

job_options snapshot_options(std::uint64_t steps) {
  auto options = small_options();
  options.steps = steps;
  options.snapshot_every = 1;
  return options;
}

using hashes = std::map<std::uint64_t, std::string>;

/// state_dict() after each step.
hashes states_by_step(const watched_layout& of) {
  hashes found;
  auto samples = four_corners(250);
  auto every = of.average_every == 0 ? 1 : static_cast<std::uint64_t>(of.average_every);
  Trainer trainer(World::local(of.devices, snapshot_options(every)), watched_pipeline(of));
  for (std::uint64_t step = 0; step < num_watched_steps; step += every) {
    auto done = trainer.fit(samples).steps;
    found[done] = weights_sha256(trainer.state_dict());
  }
  return found;
}

/// What a thread sees of a Trainer. It ends when it is told to.
class watcher {
 public:
  explicit watcher(const Trainer& of) : of_(of), thread_([this] { watch(); }) {}
  ~watcher() { stop(); }
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;
  void stop() {
    is_over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  /// Returns when it has seen weights.
  void wait() const {
    while (!has_seen_) std::this_thread::yield();
  }
  const hashes& seen() const { return seen_; }
  bool went_back() const { return went_back_; }

 private:
  void watch() {
    while (!is_over_) {
      if (auto latest = of_.latest_weights()) {
        went_back_ |= !seen_.empty() && latest->step < seen_.rbegin()->first;
        seen_[latest->step] = weights_sha256(latest->weights);
        has_seen_ = true;
      }
      std::this_thread::yield();
    }
  }

  const Trainer& of_;
  std::atomic<bool> is_over_ = false, has_seen_ = false;
  hashes seen_;
  bool went_back_ = false;
  std::thread thread_;
};

void check_all(const hashes& seen, const hashes& states) {
  CHECK_FALSE(seen.empty());
  for (const auto& [step, hash] : seen) {
    INFO(step);
    if (states.contains(step)) CHECK(hash == states.at(step));
  }
}

}  // namespace

TEST_CASE("another thread gets the weights of complete steps while fit runs, on any number of devices") {
  for (const auto& of : {watched_layout{}, watched_layout{2, 1, 2}, watched_layout{3, 1, 2},
                         watched_layout{2, 2, 4}, watched_layout{1, 2, 1}, watched_layout{1, 2, 2, 3}}) {
    CAPTURE(of.stages, of.replicas, of.devices, of.average_every);
    auto states = states_by_step(of);
    const watcher* other = nullptr;
    Trainer* inner = nullptr;
    hashes in_callback;
    trainer_callbacks callbacks;
    callbacks.on_step = [&](const step_event& event) {
      if (auto latest = inner->latest_weights()) in_callback[latest->step] = weights_sha256(latest->weights);
      // Fit is not over before the thread has seen something.
      if (event.step == 3) other->wait();
    };
    Trainer trainer(World::local(of.devices, snapshot_options(num_watched_steps)), watched_pipeline(of),
                    callbacks);
    inner = &trainer;
    CHECK_FALSE(trainer.latest_weights());
    watcher watching(trainer);
    other = &watching;
    CHECK(trainer.fit(four_corners(250)).steps == num_watched_steps);
    watching.stop();
    CHECK_FALSE(watching.went_back());
    check_all(watching.seen(), states);
    check_all(in_callback, states);
    auto latest = trainer.latest_weights();
    REQUIRE(latest);
    CHECK(latest->step == num_watched_steps);
    auto state = trainer.state_dict();
    CHECK(weights_sha256(latest->weights) == weights_sha256(state));
    REQUIRE(latest->weights.size() == state.size());
    for (std::size_t i = 0; i < state.size(); ++i) {
      CHECK(latest->weights[i].name == state[i].name);
      CHECK(latest->weights[i].value.shape() == state[i].value.shape());
    }
  }
}

TEST_CASE("the latest weights are the caller's: training does not change them, nor they the training") {
  Trainer trainer(World::local(1, snapshot_options(4)), watched_pipeline({}));
  auto samples = four_corners(250);
  trainer.fit(samples);
  auto first = trainer.latest_weights();
  REQUIRE(first);
  auto hash = weights_sha256(first->weights);
  trainer.fit(samples);
  CHECK(weights_sha256(first->weights) == hash);
  auto second = trainer.latest_weights();
  for (auto& each : second->weights) each.value.fill_zero();
  CHECK(weights_sha256(trainer.latest_weights()->weights) == trainer.weights_sha256());
}

TEST_CASE("buffers are among the latest weights: running means of replica 0") {
  auto images = tensor::full({64, 1, 4, 4}, 1);
  for (std::size_t i = 0; i < images.values<float>().size(); ++i)
    images.values<float>()[i] = static_cast<float>(i % 7) / 7;
  auto labels = tensor::from(std::vector<std::int64_t>(64, 1), {64});
  auto samples = std::make_shared<dataset>(labelled_samples{images, labels});
  for (int replicas : {1, 2}) {
    auto pipeline = Pipeline(nn::Sequential(nn::Conv2d(1, 4, 3), nn::BatchNorm2d(4), nn::ReLU(),
                                            nn::Flatten(), nn::Linear(16, 4)))
                        .microbatches(2)
                        .stages(2)
                        .replicas(replicas)
                        .optimizer(optim::SGD({.lr = 0.01, .momentum = 0.9}));
    auto options = snapshot_options(3);
    options.batch = 16;
    Trainer trainer(World::local(2 * replicas, options), std::move(pipeline));
    trainer.fit(samples);
    auto latest = trainer.latest_weights();
    REQUIRE(latest);
    CHECK(weights_sha256(latest->weights) == weights_sha256(trainer.state_dict()));
  }
}

TEST_CASE("a loop of one's own and a job that resumes have latest weights too") {
  temp_folder folder;
  auto options = snapshot_options(3);
  options.snapshot_dir = folder.path();
  auto samples = four_corners(64);
  batch whole{samples->samples(), samples->labels()};
  auto wait_for = [](const Trainer& trainer, std::uint64_t step) {
    while (!trainer.latest_weights() || trainer.latest_weights()->step < step) std::this_thread::yield();
    return weights_sha256(trainer.latest_weights()->weights);
  };
  std::string hash;
  {
    Trainer trainer(World::local(2, options), watched_pipeline({2, 1, 2}));
    for (int step = 0; step < 5; ++step) {
      trainer.forward_backward(whole);
      trainer.optimizer_step();
    }
    CHECK(wait_for(trainer, 5) == trainer.weights_sha256());
    CHECK(trainer.fit(samples).steps == 8);
    hash = trainer.weights_sha256();
  }
  options.resume = true;
  Trainer trainer(World::local(2, options), watched_pipeline({2, 1, 2}));
  CHECK(trainer.resumed_step() == 8);
  CHECK_FALSE(trainer.latest_weights());
  trainer.weights_sha256();  // not what the other job did first: of the snapshot's state
  CHECK(wait_for(trainer, 8) == hash);
}

TEST_CASE("each Trainer of a World has latest weights of its own") {
  auto world = World::local(1, snapshot_options(2));
  auto samples = four_corners(250);
  std::string first;
  {
    Trainer trainer(world, watched_pipeline({}));
    trainer.fit(samples);
    first = weights_sha256(trainer.latest_weights()->weights);
  }
  Trainer trainer(world, Pipeline(nn::Sequential(nn::Linear(2, 4))).microbatches(2));
  CHECK_FALSE(trainer.latest_weights());
  trainer.fit(samples);
  CHECK(trainer.latest_weights()->weights.size() == 2);
  CHECK(weights_sha256(trainer.latest_weights()->weights) == trainer.weights_sha256());
}
