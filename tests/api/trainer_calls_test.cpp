// One call of a Trainer at a time: what a callback or another thread gets while one runs.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <future>
#include <map>
#include <stdexcept>
#include <string>

#include "api/replicas/replica_training.hpp"
#include "package/synthetic.hpp"
#include "support/temp_folder.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

using calls = std::map<std::string, std::function<void(Trainer&)>>;

/// All calls of a Trainer and its World that wait for the job, by the name in the error.
calls all_calls(const World& world, const std::filesystem::path& file) {
  auto samples = four_corners(64);
  return {{"Trainer::fit", [samples](Trainer& of) { of.fit(samples); }},
          {"Trainer::evaluate", [samples](Trainer& of) { of.evaluate(samples); }},
          {"Trainer::weights_sha256", [](Trainer& of) { of.weights_sha256(); }},
          {"Trainer::state_dict", [](Trainer& of) { of.state_dict(); }},
          {"Trainer::save", [file](Trainer& of) { of.save(file); }},
          {"Trainer::predict", [samples](Trainer& of) { of.predict(samples); }},
          {"Trainer::record", [](Trainer& of) { of.record("a value"); }},
          {"Trainer::memory_report", [](Trainer& of) { of.memory_report(); }},
          {"Trainer::forward_backward",
           [samples](Trainer& of) {
             of.forward_backward({samples->samples(), samples->labels()});
           }},
          {"Trainer::optimizer_step", [](Trainer& of) { of.optimizer_step(); }},
          {"Trainer::forward",
           [samples](Trainer& of) {
             of.forward({samples->samples(), {}});
           }},
          {"World::barrier", [world = World(world)](Trainer&) mutable { world.barrier(); }}};
}

}  // namespace

TEST_CASE("each call within on_step throws at once, naming the call and the callback") {
  temp_folder folder;
  auto world = World::local(1, options_of(8));
  auto calls = all_calls(world, folder.path() / "weights.safetensors");
  auto call = calls.begin();
  Trainer* inner = nullptr;
  std::size_t num_refused = 0;
  trainer_callbacks callbacks;
  callbacks.on_step = [&](const step_event&) {
    for (call = calls.begin(); call != calls.end(); ++call) {
      CAPTURE(call->first);
      CHECK_THROWS_MATCHES(
          call->second(*inner), std::logic_error,
          MessageMatches(ContainsSubstring("[" + call->first + "]") &&
                         ContainsSubstring("while the callback on_step of Trainer::fit runs")));
      ++num_refused;
    }
  };
  Trainer trainer(world, small_pipeline(), callbacks);
  inner = &trainer;
  // The fit goes on as if they had not been made, and so do later calls.
  CHECK(trainer.fit(four_corners(250)).steps == 8);
  CHECK(num_refused == 8 * calls.size());
  CHECK(trainer.fit(four_corners(250)).steps == 16);
  trainer.save(folder.path() / "weights.safetensors");
}

TEST_CASE("an error of a call within a callback ends the fit if the callback lets it out") {
  Trainer* inner = nullptr;
  trainer_callbacks callbacks;
  callbacks.on_step = [&](const step_event&) { inner->state_dict(); };
  Trainer trainer(World::local(2, options_of(8)), small_pipeline(), callbacks);
  inner = &trainer;
  CHECK_THROWS_MATCHES(
      trainer.fit(four_corners(250)), std::logic_error,
      MessageMatches(ContainsSubstring("[Trainer::state_dict]") && ContainsSubstring("on_step")));
}

TEST_CASE("a call on another thread while fit runs throws at once") {
  temp_folder folder;
  auto world = World::local(1, options_of(2));
  auto calls = all_calls(world, folder.path() / "weights.safetensors");
  Trainer* inner = nullptr;
  std::size_t num_refused = 0;
  trainer_callbacks callbacks;
  // The callback is as slow as these threads: fit cannot end before them.
  callbacks.on_step = [&](const step_event&) {
    for (const auto& [name, call] : calls) {
      CAPTURE(name);
      auto made = std::async(std::launch::async, [&made_by = call, inner] { made_by(*inner); });
      CHECK_THROWS_MATCHES(
          made.get(), std::logic_error,
          MessageMatches(ContainsSubstring("[" + name + "]") && ContainsSubstring("of Trainer::fit runs")));
      ++num_refused;
    }
  };
  Trainer trainer(world, small_pipeline(), callbacks);
  inner = &trainer;
  CHECK(trainer.fit(four_corners(250)).steps == 2);
  CHECK(num_refused == 2 * calls.size());
}

TEST_CASE("a callback that makes a group, which would wait for processes in fit, is refused") {
  auto world = World::local(1, options_of(2));
  int num_refused = 0;
  trainer_callbacks callbacks;
  callbacks.on_step = [&](const step_event&) {
    CHECK_THROWS_MATCHES(
        world.default_group(), std::logic_error,
        MessageMatches(ContainsSubstring("[World::default_group]") && ContainsSubstring("on_step")));
    CHECK_THROWS_MATCHES(
        world.new_group({0}), std::logic_error,
        MessageMatches(ContainsSubstring("[World::new_group]") && ContainsSubstring("on_step")));
    // Another thread is in no callback.
    CHECK(std::async(std::launch::async, [&] { return world.new_group({0}).size(); }).get() == 1);
    CHECK(world.local_groups().size() == 1);
    ++num_refused;
  };
  Trainer trainer(world, small_pipeline(), callbacks);
  trainer.fit(four_corners(250));
  CHECK(num_refused == 2);
  auto all = world.default_group();
  CHECK(all.size() == 1);
}

TEST_CASE("a call within on_resumed throws at once") {
  temp_folder folder;
  auto options = options_of(2);
  options.snapshot_dir = folder.path();
  options.resume = true;
  auto world = World::local(1, options);
  bool was_called = false;
  trainer_callbacks callbacks;
  callbacks.on_resumed = [&](const resume_event&) {
    was_called = true;
    CHECK_THROWS_MATCHES(
        world.barrier(), std::logic_error,
        MessageMatches(ContainsSubstring("[World::barrier]") && ContainsSubstring("on_resumed")));
  };
  Trainer trainer(world, small_pipeline(), callbacks);
  CHECK(was_called);
  CHECK(trainer.fit(four_corners(250)).steps == 2);
}

TEST_CASE("the steps that a fit has before it are its own, also in one that is cancelled") {
  std::uint64_t last_target = 0, last_step = 0;
  trainer_callbacks callbacks;
  callbacks.on_step = [&](const step_event& event) {
    last_target = event.target_step;
    last_step = event.step;
    if (event.step == 2) event.cancel();
  };
  Trainer trainer(World::local(1, options_of(100)), small_pipeline(), callbacks);
  auto fitted = trainer.fit(four_corners(3200));
  CHECK(fitted.steps < 100);
  CHECK(last_step == fitted.steps);
  CHECK(last_target == 100);
}

TEST_CASE("a Trainer says from which step its job resumed") {
  temp_folder folder;
  auto options = options_of(4);
  options.snapshot_dir = folder.path();
  {
    Trainer trainer(World::local(1, options), small_pipeline());
    CHECK_FALSE(trainer.resumed_step());
    trainer.fit(four_corners(250));
    CHECK_FALSE(trainer.resumed_step());
  }
  options.resume = true;
  {
    Trainer trainer(World::local(1, options), small_pipeline());
    CHECK(trainer.resumed_step() == 4);
  }
  options.snapshot_dir = folder.path() / "empty";
  Trainer trainer(World::local(1, options), small_pipeline());
  CHECK_FALSE(trainer.resumed_step());
}

TEST_CASE("a recorded value is the program's, and one that is too long is refused") {
  auto world = World::local(2, options_of(2));
  Trainer trainer(world, small_pipeline());
  CHECK(trainer.record("before the first step") == "before the first step");
  CHECK_FALSE(world.is_replaying());
  CHECK_THROWS_MATCHES(trainer.record(std::string((64 << 10) + 1, 'x')), bad_input,
                       MessageMatches(ContainsSubstring("at most 64 KiB, got 65537 bytes")));
  trainer.fit(four_corners(64));
  std::string longest(64 << 10, 'y');
  CHECK(trainer.record(longest) == longest);
}
