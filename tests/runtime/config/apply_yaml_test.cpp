#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>

#include "support/temp_folder.hpp"
#include "troupe/config/job_options.hpp"
#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::bad_input;

namespace {

/// The options after `text` as a YAML file named job.yaml.
troupe::job_options applied(const std::string& text) {
  troupe::testing::temp_folder folder;
  auto file = folder.path() / "job.yaml";
  std::ofstream(file) << text;
  troupe::job_options options;
  troupe::apply_yaml(file, options);
  return options;
}

}  // namespace

TEST_CASE("a YAML file sets the fields it names and no other") {
  auto options = applied(
      "# a job\n"
      "batch: 512\n"
      "schedule: gpipe\n"
      "learning_rate: 0.01\n"
      "snapshot_dir: /tmp/snapshots\n"
      "snapshot_interval: 200ms\n"
      "join_timeout: 90\n"
      "json: yes\n");
  CHECK(options.batch == 512);
  CHECK(options.schedule == troupe::schedule_kind::gpipe);
  CHECK(options.learning_rate == 0.01);
  CHECK(options.snapshot_dir == "/tmp/snapshots");
  CHECK(options.snapshot_interval == std::chrono::milliseconds(200));
  CHECK(options.join_timeout == std::chrono::seconds(90));
  CHECK(options.json);
  CHECK(options.microbatches == troupe::job_options().microbatches);
}

TEST_CASE("an empty YAML file changes nothing") {
  CHECK(applied("").batch == troupe::job_options().batch);
  CHECK(applied("# only a comment\n").batch == troupe::job_options().batch);
}

TEST_CASE("a file that is far too large for options is refused before it is parsed") {
  CHECK_THROWS_AS(applied(std::string((4U << 20) + 1, 'a')), bad_input);
  CHECK_THROWS_WITH(applied(std::string((4U << 20) + 1, 'a')),
                    ContainsSubstring("job.yaml': expected 4194304 bytes at most, and it has more"));
  CHECK_THROWS_WITH(applied("# " + std::string((4U << 20) - 16, 'a') + "\nbacth: 1\n"),
                    ContainsSubstring("'bacth'"));
}

TEST_CASE("a file that never ends is refused") {
  troupe::job_options options;
  CHECK_THROWS_WITH(troupe::apply_yaml("/dev/zero", options), ContainsSubstring("bytes at most"));
}

TEST_CASE("an unknown key is refused with file, line and the nearest key") {
  CHECK_THROWS_AS(applied("bacth: 12\n"), bad_input);
  CHECK_THROWS_WITH(applied("epochs: 3\n\nbacth: 12\n"),
                    ContainsSubstring("job.yaml:3:") && ContainsSubstring("'bacth'") &&
                        ContainsSubstring("did you mean 'batch'") && ContainsSubstring("microbatches"));
  CHECK_THROWS_WITH(applied("snapshot-dir: runs\n"), ContainsSubstring("did you mean 'snapshot_dir'"));
  CHECK_THROWS_WITH(applied("learningrate: 1\n"), ContainsSubstring("did you mean 'learning_rate'"));
}

TEST_CASE("a value of the wrong type is refused with file, line and key") {
  CHECK_THROWS_WITH(applied("epochs: 3\nbatch: many\n"), ContainsSubstring("job.yaml:2:") &&
                                                             ContainsSubstring("'batch'") &&
                                                             ContainsSubstring("a whole number, got 'many'"));
  CHECK_THROWS_WITH(applied("batch: [1, 2]\n"), ContainsSubstring("expected one value, got a list"));
  CHECK_THROWS_WITH(applied("batch: {a: 2}\n"), ContainsSubstring("expected one value"));
  CHECK_THROWS_WITH(applied("batch:\n"), ContainsSubstring("expected one value, got none"));
  CHECK_THROWS_WITH(applied("? [a, b]\n: 1\n"), ContainsSubstring("expected a key"));
  CHECK_THROWS_WITH(applied("schedule: sideways\n"),
                    ContainsSubstring("job.yaml:1:") && ContainsSubstring("gpipe"));
}

TEST_CASE("a file that is no map of settings is refused") {
  CHECK_THROWS_WITH(applied("- batch\n"), ContainsSubstring("job.yaml:1:") && ContainsSubstring("list"));
  CHECK_THROWS_WITH(applied("just words\n"), ContainsSubstring("job.yaml:1:"));
  CHECK_THROWS_WITH(applied("epochs: 2\nbatch: [1\n"), ContainsSubstring("job.yaml:"));
  CHECK_THROWS_AS(applied("batch: \"1\n"), bad_input);
  CHECK_THROWS_WITH(applied("batch: 8\n\tsteps: 3\n"), ContainsSubstring(":2: the line begins with a tab"));
  CHECK_THROWS_WITH(applied("<<: {batch: 8}\n"), ContainsSubstring("merge keys ('<<') are not read"));
  CHECK_THROWS_WITH(applied("batch: 8\nnull: 3\n"), ContainsSubstring("or the word null"));
  CHECK_THROWS_WITH(applied("batch: 8\nbatch: 16\n"),
                    ContainsSubstring("job.yaml:2:") && ContainsSubstring("twice"));
}

TEST_CASE("a second document is refused with its line") {
  CHECK_THROWS_AS(applied("batch: 16\n---\nbatch: 8\n"), bad_input);
  CHECK_THROWS_WITH(applied("batch: 16\n---\nbatch: 8\n"),
                    ContainsSubstring("job.yaml:3: expected one YAML document, got a second one"));
  CHECK_THROWS_WITH(applied("batch: 16\n---\n"), ContainsSubstring("expected one YAML document"));
  CHECK(applied("---\nbatch: 16\n...\n").batch == 16);
}

TEST_CASE("a YAML file that cannot be read is named") {
  troupe::testing::temp_folder folder;
  troupe::job_options options;
  CHECK_THROWS_WITH(troupe::apply_yaml(folder.path() / "none.yaml", options),
                    ContainsSubstring("none.yaml") && ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(troupe::apply_yaml(folder.path(), options), ContainsSubstring("folder"));
  CHECK_THROWS_AS(troupe::apply_yaml(folder.path(), options), bad_input);
  auto loop = folder.path() / "loop";
  std::filesystem::create_symlink(loop, loop);
  CHECK_THROWS_AS(troupe::apply_yaml(loop, options), bad_input);
  CHECK_THROWS_WITH(
      troupe::apply_yaml(loop, options),
      ContainsSubstring("cannot read the configuration file '" + loop.string() + "': Too many"));
  CHECK_THROWS_WITH(troupe::apply_yaml(std::string(300, 'x'), options), ContainsSubstring("name too long"));
}

TEST_CASE("a refused YAML file leaves the options as they were") {
  troupe::testing::temp_folder folder;
  std::ofstream(folder.path() / "job.yaml") << "batch: 512\nepochs: x\n";
  troupe::job_options options;
  CHECK_THROWS_AS(troupe::apply_yaml(folder.path() / "job.yaml", options), bad_input);
  CHECK(options.batch == troupe::job_options().batch);
}

TEST_CASE("truth is said in each spelling of YAML") {
  for (std::string word : {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "1"}) {
    CAPTURE(word);
    CHECK(applied("json: " + word + "\n").json);
    CHECK(applied("verify_frames: " + word + "\n").verify_frames);
  }
  for (std::string word : {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "0"}) {
    CAPTURE(word);
    CHECK_FALSE(applied("json: true\nresume: " + word + "\n").resume);
  }
  CHECK_THROWS_WITH(applied("json: tRUE\n"), ContainsSubstring("expected true or false, got 'tRUE'"));
}

TEST_CASE("the inspector is switched on and off by a word") {
  CHECK(applied("inspect: true\n").inspect == "127.0.0.1:0");
  CHECK(applied("inspect: On\n").inspect == "127.0.0.1:0");
  CHECK(applied("inspect: FALSE\n").inspect.empty());
  CHECK(applied("inspect: 127.0.0.1:8080\n").inspect == "127.0.0.1:8080");
}

TEST_CASE("null leaves a setting as it is, and nothing at all is refused") {
  const troupe::job_options defaults;
  for (std::string word : {"~", "null", "Null", "NULL", "null # later", "~   "}) {
    CAPTURE(word);
    auto options = applied("batch: " + word + "\nsnapshot_dir: " + word + "\nsteps: 7\n");
    CHECK(options.batch == defaults.batch);
    CHECK(options.snapshot_dir.empty());
    CHECK(options.steps == 7);
    CHECK_FALSE(options.given.contains("batch"));
  }
  CHECK(applied("data: 'null'\n").data == "null");
  CHECK_THROWS_WITH(applied("batch:\nsteps: 7\n"),
                    ContainsSubstring("job.yaml:1:") && ContainsSubstring("got none"));
  CHECK_THROWS_WITH(applied("batch: # null\nnull: 7\n"), ContainsSubstring("got none"));
  CHECK_THROWS_WITH(applied("steps: 7\nbatch:"), ContainsSubstring("got none"));
  CHECK_THROWS_WITH(applied("bacth: null\n"), ContainsSubstring("did you mean 'batch'"));
}

TEST_CASE("numbers may have underscores between digits") {
  auto options = applied("steps: 1_000\nlearning_rate: 0.000_1\nseed: 1_2_3\ndata: runs/1_000\n");
  CHECK(options.steps == 1000);
  CHECK(options.learning_rate == 0.0001);
  CHECK(options.seed == 123);
  CHECK(options.data == "runs/1_000");
  for (std::string bad : {"_1", "1_", "1__0", "1_a"})
    CHECK_THROWS_WITH(applied("steps: " + bad + "\n"),
                      ContainsSubstring("a whole number >= 0, got '" + bad + "'"));
}

TEST_CASE("names of other systems suggest ours, and a word like none suggests nothing") {
  CHECK_THROWS_WITH(applied("lr: 0.1\n"),
                    ContainsSubstring("unknown key 'lr'; did you mean 'learning_rate'?"));
  CHECK_THROWS_WITH(applied("batch_size: 8\n"), ContainsSubstring("did you mean 'batch'?"));
  CHECK_THROWS_WITH(applied("max_grad_norm: 1\n"), ContainsSubstring("did you mean 'clip_grad_norm'?"));
  CHECK_THROWS_WITH(applied("output_dir: x\n"), ContainsSubstring("did you mean 'snapshot_dir'?"));
  CHECK_THROWS_WITH(applied("xyzzyplugh: 1\n"), ContainsSubstring("unknown key 'xyzzyplugh'. Known keys:") &&
                                                    !ContainsSubstring("did you mean"));
}
