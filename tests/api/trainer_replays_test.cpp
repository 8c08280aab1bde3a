// A job that resumes makes its program's calls again: what they return, and when they are computed.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "package/synthetic.hpp"
#include "support/temp_folder.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// Each fit does five steps.
job_options options_in(const std::filesystem::path& folder, bool resumes) {
  auto options = small_options();
  options.steps = 5;
  options.snapshot_dir = folder;
  options.resume = resumes;
  return options;
}

}  // namespace

TEST_CASE("a job that resumes gets results of steps before the snapshot again, and computes the others") {
  temp_folder folder;
  auto samples = four_corners(250);
  evaluation_result early, late;
  std::string early_hash, late_hash;
  {
    auto world = World::local(2, options_in(folder.path(), false));
    Trainer trainer(world, small_pipeline());
    trainer.fit(samples);
    early = trainer.evaluate(samples);
    early_hash = trainer.weights_sha256();
    trainer.record("the first run's");
    trainer.fit(samples);
    late = trainer.evaluate(samples);
    late_hash = trainer.weights_sha256();
    CHECK_FALSE(world.is_replaying());
  }
  REQUIRE(early_hash != late_hash);
  auto world = World::local(2, options_in(folder.path(), true));
  Trainer trainer(world, small_pipeline());
  CHECK(trainer.fit(samples).steps == 5);
  CHECK(world.is_replaying());
  CHECK(trainer.evaluate(samples).loss == early.loss);
  CHECK(trainer.weights_sha256() == early_hash);
  CHECK(trainer.record("the second run's") == "the first run's");
  CHECK(world.is_replaying());
  CHECK(trainer.fit(samples).steps == 10);  // its snapshot was written before it was over
  CHECK_FALSE(world.is_replaying());
  CHECK(trainer.evaluate(samples).loss == late.loss);
  CHECK(trainer.weights_sha256() == late_hash);
}

TEST_CASE("tensors of steps before the snapshot are gone in a job that resumes, which goes on") {
  temp_folder folder;
  auto samples = four_corners(250);
  {
    Trainer trainer(World::local(2, options_in(folder.path(), false)), small_pipeline());
    trainer.fit(samples);
    trainer.state_dict();
    trainer.predict(samples);
    trainer.save(folder.path() / "early.safetensors");
    trainer.fit(samples);
  }
  auto written = std::filesystem::last_write_time(folder.path() / "early.safetensors");
  Trainer trainer(World::local(2, options_in(folder.path(), true)), small_pipeline());
  trainer.fit(samples);
  CHECK_THROWS_MATCHES(trainer.state_dict(), result_gone,
                       MessageMatches(ContainsSubstring("of the one from whose snapshot it resumes") &&
                                      ContainsSubstring("delivered tensors of step 5")));
  CHECK_THROWS_AS(trainer.predict(samples), result_gone);
  trainer.save(folder.path() / "early.safetensors");
  CHECK(std::filesystem::last_write_time(folder.path() / "early.safetensors") == written);
  CHECK(trainer.fit(samples).steps == 10);
  CHECK(trainer.state_dict().size() == 4);
}

TEST_CASE("a program that evaluates other data when it resumes gets the snapshot's state from there on") {
  temp_folder folder;
  auto samples = four_corners(250), others = four_corners(120);
  std::string hash;
  {
    Trainer trainer(World::local(2, options_in(folder.path(), false)), small_pipeline());
    trainer.fit(samples);
    trainer.evaluate(samples);
    trainer.fit(samples);
    hash = trainer.weights_sha256();
  }
  auto world = World::local(2, options_in(folder.path(), true));
  Trainer trainer(world, small_pipeline());
  trainer.fit(samples);
  CHECK(trainer.evaluate(others).num_samples == 120);
  CHECK_FALSE(world.is_replaying());
  CHECK(trainer.weights_sha256() == hash);
}
