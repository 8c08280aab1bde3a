// Troupe as a part of a program that has other things to do.
#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <future>
#include <iterator>
#include <limits>
#include <optional>
#include <thread>

#include "package/synthetic.hpp"
#include "support/bits.hpp"
#include "support/temp_folder.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Matches;
using Catch::Matchers::MessageMatches;

namespace {

/// Computes nothing, and fails in the microbatch with this number.
class FailingModule : public nn::Module {
 public:
  explicit FailingModule(int good_microbatches)
      : left_(std::make_shared<std::atomic<int>>(good_microbatches)) {}
  variable forward(const variable& input) override {
    if (left_->fetch_sub(1) <= 0) throw std::runtime_error("the sensor is unplugged");
    return input;
  }
  std::shared_ptr<nn::Module> clone() const override { return std::make_shared<FailingModule>(*this); }

 private:
  std::shared_ptr<std::atomic<int>> left_;
};

/// Keeps -infinity on purpose, as attention masks do.
class Masked : public nn::module_of<Masked> {
 public:
  variable forward(const variable& input) override { return input; }
  void each_buffer(const buffer_visitor& visit) override { visit(mask_); }

 private:
  nn::buffer mask_{"mask", {4}, -std::numeric_limits<float>::infinity()};
};

Pipeline failing_pipeline() {
  nn::Sequential model(nn::Linear(2, 16), FailingModule(10), nn::Linear(16, 4));
  return Pipeline(model).stages(2).microbatches(4);
}

std::string train(int devices) {
  Trainer trainer(World::local(devices, small_options()), small_pipeline());
  auto samples = four_corners(256);
  trainer.fit(samples);
  CHECK(trainer.evaluate(samples).accuracy > 0.9);
  return trainer.weights_sha256();
}

auto threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}

/// A thread that was joined may be listed for a moment longer. A thread that stays ends in the test's own
/// timeout.
void wait_for_threads(std::ptrdiff_t count) {
  while (threads_of_this_process() > count) std::this_thread::yield();
}

}  // namespace

TEST_CASE("a job trains on one thread while the program goes on with its own work") {
  std::atomic<std::uint64_t> steps = 0;
  auto training = std::async(std::launch::async, [&] {
    Trainer trainer(World::local(2, small_options()), small_pipeline(),
                    {.on_step = [&](const step_event& event) { steps = event.step; }});
    trainer.fit(four_corners(256));
    return trainer.weights_sha256();
  });
  while (steps < 10) std::this_thread::yield();
  CHECK(train(1) == training.get());
  CHECK(steps == 80);
}

TEST_CASE("an exception in a module ends training with its text, and a new world works") {
  {
    Trainer trainer(World::local(2, small_options()), failing_pipeline());
    auto named =
        MessageMatches(Matches("device [01] on rank 0 failed: in layer 1: the sensor is unplugged.*"));
    CHECK_THROWS_MATCHES(trainer.fit(four_corners(256)), job_failed, named);
    // And so does every later call, rather than wait for a job that is gone.
    CHECK_THROWS_MATCHES(trainer.weights_sha256(), job_failed, named);
  }
  CHECK(train(2) == train(1));
}

TEST_CASE("an exception from a callback leaves fit, and the trainer stays usable") {
  auto alone = train(1);
  Trainer trainer(World::local(2, small_options()), small_pipeline(),
                  {.on_step = [](const step_event& event) {
                    if (event.step == 3 || event.step == 7) throw std::runtime_error("enough");
                  }});
  auto samples = four_corners(256);
  CHECK_THROWS_MATCHES(trainer.fit(samples), std::runtime_error, MessageMatches(ContainsSubstring("enough")));
  SECTION("for the next call, which begins when the training has ended") {
    CHECK(trainer.weights_sha256() == alone);
  }
  SECTION("after several calls that ended with an exception") {
    CHECK_THROWS_AS(trainer.fit(samples), std::runtime_error);
    CHECK(trainer.weights_sha256() != alone);
  }
  SECTION("for destruction during training") {}
}

TEST_CASE("worlds end in any order and at any time") {
  SECTION("without a trainer") { auto world = World::local(3); }
  SECTION("with a trainer that never trains") {
    Trainer trainer(World::local(2, small_options()), small_pipeline());
  }
  SECTION("after a barrier") {
    auto world = World::local(2);
    world.barrier();
  }
  SECTION("while another one lives on") {
    auto alone = train(2);
    std::optional<World> other = World::local(1, small_options());
    Trainer trainer(World::local(2, small_options()), small_pipeline());
    other.reset();
    trainer.fit(four_corners(256));
    CHECK(trainer.weights_sha256() == alone);
  }
}

TEST_CASE("a user's training loop stays on its thread, even if it may use more") {
  auto samples = four_corners(64);
  auto before = threads_of_this_process();
  std::vector<tensor> weights;
  for (int threads : {1, 4}) {
    set_num_threads(threads);
    nn::Sequential model(nn::Linear(2, 64), nn::ReLU(), nn::LayerNorm(64), nn::Linear(64, 4));
    model.materialize(1);
    auto optimizer = optim::AdamW({.lr = 1e-3})(model.named_parameters());
    for (std::uint64_t step = 0; step < 5; ++step) {
      auto loss = cross_entropy(model({samples->samples()}), samples->labels(), 1.0 / 64);
      loss.loss.backward();
      optimizer->apply(step);
    }
    weights.push_back(model.state_dict()[0].value.clone());
  }
  CHECK(threads_of_this_process() == before);
  CHECK(same_bits(weights[0], weights[1]));
  set_num_threads(1);
}

TEST_CASE("a module that keeps a mask of infinities trains with snapshots") {
  temp_folder folder;
  auto options = small_options();
  options.snapshot_dir = folder.path() / "snapshots";
  nn::Sequential model(nn::Linear(2, 16), Masked(), nn::ReLU(), nn::Linear(16, 4));
  Trainer trainer(World::local(2, options), Pipeline(model).stages(2).microbatches(4));
  trainer.fit(four_corners(256));
  auto saved = read_weights(options.snapshot_dir);
  CHECK(std::ranges::count(saved, "1.mask", &named_tensor::name) == 1);
}

TEST_CASE("a world that has ended leaves no thread behind") {
  train(2);  // what libraries start once and keep
  auto before = threads_of_this_process();
  for (int round = 0; round < 3; ++round) {
    train(2);
    { auto world = World::local(2); }
    {
      Trainer trainer(World::local(2, small_options()), failing_pipeline());
      CHECK_THROWS_AS(trainer.fit(four_corners(256)), job_failed);
    }
  }
  wait_for_threads(before);
  CHECK(threads_of_this_process() <= before);
}

TEST_CASE("what cannot be trained is refused before anything starts") {
  auto refused = [](const job_options& options, Pipeline pipeline, const char* text) {
    CHECK_THROWS_MATCHES(Trainer(World::local(options.devices, options), std::move(pipeline)), bad_input,
                         MessageMatches(ContainsSubstring(text)));
  };
  auto options = small_options();
  refused(options, small_pipeline().stages(9), "9 stages");
  refused(options, small_pipeline().microbatches(5), "5 microbatches");
  options.devices = 3;
  refused(options, small_pipeline(), "3 devices");
}

TEST_CASE("missing samples are refused, and the trainer can use others") {
  Trainer trainer(World::local(2, small_options()), small_pipeline());
  auto refused = [](const char* text) { return MessageMatches(ContainsSubstring(text)); };
  CHECK_THROWS_MATCHES(trainer.fit(nullptr), bad_input, refused("fit needs a data set"));
  CHECK_THROWS_MATCHES(trainer.evaluate(nullptr), bad_input, refused("evaluate needs a data set"));
  auto empty =
      std::make_shared<dataset>(labelled_samples{tensor::zeros({0, 2}), tensor::zeros({0}, dtype::u8)});
  CHECK_THROWS_MATCHES(trainer.fit(empty), bad_input, refused("larger than the data set of 0"));
  CHECK_THROWS_MATCHES(trainer.evaluate(empty), bad_input, refused("needs samples"));
  auto samples = four_corners(256);
  CHECK(trainer.fit(samples).steps == 80);
  CHECK(trainer.evaluate(samples).accuracy > 0.9);
}

TEST_CASE("a given option that the pipeline does not use is refused with its name") {
  auto made = [](const job_options& options, Pipeline pipeline) {
    Trainer(World::local(options.devices, options), std::move(pipeline));
  };
  auto options = small_options();
  options.stages = 4;
  made(options, small_pipeline());  // the program's own default, not given by the user
  options.given = {"stages"};
  CHECK_THROWS_MATCHES(made(options, small_pipeline()), bad_input,
                       MessageMatches(ContainsSubstring("--stages 4 was given") &&
                                      ContainsSubstring("Pipeline(model, options)")));
  options.stages = 2;
  made(options, small_pipeline());
  options.given = {"precision", "batch", "seed"};
  options.precision = dtype::bf16;
  CHECK_THROWS_MATCHES(made(options, small_pipeline()), bad_input,
                       MessageMatches(ContainsSubstring("--precision bf16 was given")));
  nn::Sequential model(nn::Linear(2, 16), nn::ReLU(), nn::Linear(16, 4));
  made(options, Pipeline(model, options));
}
