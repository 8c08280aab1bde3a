// The folders that a Trainer writes to: one that another job uses, and one that is gone.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>

#include "api/replicas/replica_training.hpp"
#include "package/synthetic.hpp"
#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

Pipeline two_layers() {
  return Pipeline(nn::Sequential(nn::Linear(2, 16), nn::ReLU(), nn::Linear(16, 4))).microbatches(4);
}

}  // namespace

TEST_CASE("two jobs cannot write snapshots to one folder at a time") {
  temp_folder folder;
  auto options = options_of(2);
  options.snapshot_dir = folder.path() / "run";
  {
    Trainer first(World::local(1, options), two_layers());
    first.fit(four_corners(250));
    for (bool fresh_start : {false, true}) {
      auto second = options;
      second.fresh_start = fresh_start;
      CHECK_THROWS_MATCHES(Trainer(World::local(1, second), two_layers()), bad_input,
                           MessageMatches(ContainsSubstring("--snapshot-dir: the folder") &&
                                          ContainsSubstring("is in use by job")));
    }
  }
  options.resume = true;
  CHECK_NOTHROW(Trainer(World::local(1, options), two_layers()));
}

TEST_CASE("a trace that cannot be written costs nothing that was trained") {
  temp_folder folder;
  auto options = options_of(3);
  auto expected = [&] {
    Trainer plain(World::local(1, options), two_layers());
    plain.fit(four_corners(250));
    return plain.weights_sha256();
  }();
  options.trace_dir = folder.path() / "traces";
  std::vector<std::string> hashes;
  for (bool is_there : {true, false}) {
    Trainer traced(World::local(1, options), two_layers(), {.on_step = [&](const step_event&) {
                     if (!is_there) std::filesystem::remove_all(options.trace_dir);
                   }});
    auto fitted = traced.fit(four_corners(250));
    CHECK(std::filesystem::exists(options.trace_dir / "trace-rank-0.json") == is_there);
    CHECK(fitted.trace == (is_there ? options.trace_dir / "trace-rank-0.json" : std::filesystem::path()));
    CHECK(traced.weights_sha256() == expected);
  }
}
