// The command line of a program: its own options, and the job options that it uses.
#include "troupe/program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"

using namespace troupe;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

struct outcome {
  int exit_code = 0;
  bool ran = false;  ///< run_program called the body
};

outcome run(std::vector<std::string> words, const std::vector<program_option>& own_options,
            const used_options& used = used_options::all()) {
  words.insert(words.begin(), "program");
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  outcome seen;
  auto body = [&seen](const job_options&) { seen.ran = true; };
  seen.exit_code = run_program(static_cast<int>(argv.size()), argv.data(), {}, body, own_options, used);
  return seen;
}

bool is_refused(const std::vector<std::string>& words, const std::vector<program_option>& own_options,
                const used_options& used = used_options::all()) {
  auto seen = run(words, own_options, used);
  return seen.exit_code == 2 && !seen.ran;
}

job_options given(const std::string& name) {
  job_options options;
  options.given.insert(name);
  return options;
}

}  // namespace

TEST_CASE("a program's own options are texts and decimal numbers, and keep their defaults if not given") {
  std::string text = "some";
  int count = 7;
  double rate = 0.5;
  const std::vector<program_option> own = {
      {"--text", "a text", &text}, {"--count", "a number", &count}, {"--rate", "another", &rate}};
  CHECK(run({}, own).ran);
  CHECK(text == "some");
  CHECK(count == 7);
  CHECK(run({"--text", "other", "--count", "-12", "--rate", "1e-3"}, own).exit_code == 0);
  CHECK(text == "other");
  CHECK(count == -12);
  CHECK(rate == 1e-3);
}

TEST_CASE("text that is not a number as a whole is refused and changes nothing") {
  int count = 7;
  double rate = 0.5;
  const std::vector<program_option> own = {{"--count", "a number", &count}, {"--rate", "another", &rate}};
  auto wrong = GENERATE(as<std::string>(), "inf", "1e400", "2.5", "0x10", "12 layers", "99999999999", "");
  INFO(wrong);
  CHECK(is_refused({"--count", wrong}, own));
  CHECK(count == 7);
  CHECK(is_refused({"--rate", "0x10"}, own));
  CHECK(is_refused({"--rate", "1e400"}, own));
  CHECK(rate == 0.5);
}

TEST_CASE("an option that a program does not use is refused by name, from the command line and from YAML") {
  auto used = used_options::of_world().plus({"epochs"});
  CHECK(run({"--epochs", "3", "--log-level", "off"}, {}, used).ran);
  for (const auto* option : {"--steps", "--stages", "--replicas", "--snapshot-dir", "--data"}) {
    INFO(option);
    CHECK(is_refused({option, "1"}, {}, used));
  }
  CHECK(is_refused({"--resume"}, {}, used));
  testing::temp_folder folder;
  auto file = (folder.path() / "job.yaml").string();
  std::ofstream(file) << "epochs: 3\nsteps: 4\n";
  CHECK(is_refused({"--config", file}, {}, used));
  CHECK(run({"--config", file}, {}, used.plus({"steps"})).ran);
  CHECK_THROWS_MATCHES(used.refuse_others(given("snapshot_dir"), "--load"), bad_input,
                       MessageMatches(ContainsSubstring("--snapshot-dir was given, but --load does not use "
                                                        "it. Leave it out")));
}

TEST_CASE("the options that a Trainer, a World and a list of names use") {
  CHECK_NOTHROW(used_options::all().refuse_others(given("data")));
  CHECK_NOTHROW(used_options::of_trainer().refuse_others(given("steps")));
  CHECK_THROWS_AS(used_options::of_trainer().refuse_others(given("data")), bad_input);
  CHECK_THROWS_AS(used_options::of_trainer().without({"steps"}).refuse_others(given("steps")), bad_input);
  CHECK_THROWS_AS(used_options::of_world().refuse_others(given("devices")), bad_input);
  CHECK_NOTHROW(used_options::only({"seed"}).refuse_others(given("seed")));
  CHECK_THROWS_AS(used_options::only({}).refuse_others(given("seed")), bad_input);
  CHECK_THROWS_MATCHES(used_options::only({"sed"}), std::invalid_argument,
                       MessageMatches(ContainsSubstring("'sed'")));
}
