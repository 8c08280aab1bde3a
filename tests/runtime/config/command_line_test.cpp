#include "troupe/config/command_line.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <memory>

#include "support/temp_folder.hpp"
#include "troupe/config/job_fields.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/usage/help_formatter.hpp"
#include "troupe/usage/parse_command_line.hpp"

using Catch::Matchers::ContainsSubstring;

namespace {

/// The options of a program that has --prompt and --write-profile too.
struct parsed_program {
  troupe::job_options options = {};
  std::string prompt = "\n", write_profile = {};
  int length = 1;
};

parsed_program parsed_with_own(std::vector<std::string> arguments) {
  CLI::App app("", "program");
  parsed_program made;
  troupe::config::add_job_options(app, made.options);
  app.add_option("--prompt", made.prompt);
  app.add_option("--write-profile", made.write_profile);
  app.add_option("--length", made.length);
  arguments.insert(arguments.begin(), "program");
  std::vector<const char*> words;
  for (const auto& each : arguments) words.push_back(each.c_str());
  troupe::usage::parse_command_line(app, static_cast<int>(words.size()), words.data());
  return made;
}

troupe::job_options parsed(std::vector<std::string> arguments) {
  return parsed_with_own(std::move(arguments)).options;
}

}  // namespace

TEST_CASE("the command line sets fields of every type") {
  auto options =
      parsed({"--batch", "64", "--seed=7", "--learning-rate", "0.5", "--schedule", "gpipe", "--snapshot-dir",
              "runs/a", "--snapshot-interval", "250ms", "--backend", "gloo", "--json"});
  CHECK(options.batch == 64);
  CHECK(options.seed == 7);
  CHECK(options.learning_rate == 0.5);
  CHECK(options.schedule == troupe::schedule_kind::gpipe);
  CHECK(options.snapshot_dir == "runs/a");
  CHECK(options.snapshot_interval == std::chrono::milliseconds(250));
  CHECK(options.backend == "gloo");
  CHECK(options.json);
}

TEST_CASE("the option --inspect stands alone, or with an address") {
  CHECK(parsed({}).inspect.empty());
  CHECK(parsed({"--inspect"}).inspect == "127.0.0.1:0");
  CHECK(parsed({"--inspect", "--json"}).inspect == "127.0.0.1:0");
  CHECK(parsed({"--inspect", "8080", "--json"}).inspect == "8080");
  CHECK(parsed({"--inspect=127.0.0.1:80"}).inspect == "127.0.0.1:80");
  CHECK_THROWS_AS(parsed({"--backend"}), CLI::ParseError);
}

TEST_CASE("the command line wins over the file, the file over the defaults, in any order") {
  troupe::testing::temp_folder folder;
  auto file = (folder.path() / "job.yaml").string();
  std::ofstream(file) << "batch: 512\nepochs: 9\njson: true\nseed: 3\n";
  for (auto& options : {parsed({"--config", file, "--batch", "64", "--json=false"}),
                        parsed({"--batch", "64", "--json=false", "--config", file})}) {
    CHECK(options.batch == 64);
    CHECK(options.epochs == 9);
    CHECK_FALSE(options.json);
    CHECK(options.seed == 3);
    CHECK(options.microbatches == troupe::job_options().microbatches);
  }
}

TEST_CASE("options given on the command line or in a file are recorded as given") {
  using names = std::set<std::string>;
  CHECK(parsed({}).given.empty());
  CHECK(parsed({"--batch", "256", "--snapshot-dir=runs"}).given == names{"batch", "snapshot_dir"});
  CHECK(parsed({"--json"}).given == names{"json"});
  CHECK(parsed({"--json=false"}).given == names{"json"});
  troupe::testing::temp_folder folder;
  auto file = (folder.path() / "job.yaml").string();
  std::ofstream(file) << "stages: 4\njson: true\n";
  CHECK(parsed({"--config", file, "--seed", "3"}).given == names{"stages", "json", "seed"});
}

TEST_CASE("an option given twice is refused") {
  CHECK_THROWS_AS(parsed({"--epochs", "1", "--epochs", "2"}), CLI::ArgumentMismatch);
  CHECK_THROWS_AS(parsed({"--snapshot-dir", "a", "--snapshot-dir=a"}), CLI::ArgumentMismatch);
  CHECK_THROWS_AS(parsed({"--inspect", "--inspect", "8080"}), CLI::ArgumentMismatch);
}

TEST_CASE("an option of the program is no value of another one, unless '=' says so") {
  for (auto words : {std::vector<std::string>{"--snapshot-dir", "--resume"},
                     {"--snapshot-dir", "--resume=false"},
                     {"--snapshot-dir", "--prompt"},
                     {"--trace-dir", "--inspect"},
                     {"--trace-dir", "-h"},
                     {"--write-profile", "--json"},
                     {"--config", "--json"}}) {
    CAPTURE(words);
    CHECK_THROWS_AS(parsed(words), troupe::bad_input);
    CHECK_THROWS_WITH(parsed(words),
                      ContainsSubstring(words[0] + " needs a value, got the option " + words[1]));
  }
  CHECK_THROWS_WITH(parsed({"--snapshot-dir", "--"}),
                    ContainsSubstring("--snapshot-dir needs a value, got --"));
  CHECK_THROWS_WITH(
      parsed({"--steps", "2", "--snapshot-dir", "--resume"}),
      ContainsSubstring("--snapshot-dir=--resume") && ContainsSubstring("See `program --help`"));
  CHECK(parsed({"--snapshot-dir=--resume"}).snapshot_dir == "--resume");
  CHECK(parsed_with_own({"--prompt=--resume", "--resume"}).prompt == "--resume");
}

TEST_CASE("values may begin with a dash") {
  CHECK(parsed({"--learning-rate", "-0.5"}).learning_rate == -0.5);
  CHECK(parsed({"--stages", "-1"}).stages == -1);
  for (std::string prompt : {"-- hello", "--hello", "-x", "- a", "--resume now", "a=--resume"})
    CHECK(parsed_with_own({"--prompt", prompt, "--json"}).prompt == prompt);
}

TEST_CASE("a '=' with nothing behind it is refused, an empty word is the value of a text") {
  for (const auto* word : {"--snapshot-dir=", "--steps=", "--prompt=", "--inspect=", "--json="}) {
    CHECK_THROWS_AS(parsed({word, "--resume"}), troupe::bad_input);
    CHECK_THROWS_WITH(parsed({word, "8"}), ContainsSubstring("needs a value after the '=', got none"));
  }
  CHECK(parsed_with_own({"--prompt", "", "--json"}).prompt.empty());
  CHECK_THROWS_WITH(parsed({"--snapshot-dir", ""}),
                    ContainsSubstring("--snapshot-dir: expected a path, got ''"));
}

TEST_CASE("the file sets the program's own options too") {
  troupe::testing::temp_folder folder;
  auto file = (folder.path() / "job.yaml").string();
  std::ofstream(file) << "prompt: It was\nbatch: 64\nwrite_profile: costs.json\n";
  auto made = parsed_with_own({"--config", file});
  CHECK(made.prompt == "It was");
  CHECK(made.write_profile == "costs.json");
  CHECK(made.options.batch == 64);
  CHECK(made.options.given == std::set<std::string>{"batch"});
  CHECK(parsed_with_own({"--config", file, "--prompt", "A"}).prompt == "A");
  CHECK(parsed_with_own({"--prompt", "A", "--config", file}).prompt == "A");
  std::ofstream(file) << "promt: It was\n";
  CHECK_THROWS_WITH(parsed({"--config", file}), ContainsSubstring("job.yaml:1: unknown key 'promt'") &&
                                                    ContainsSubstring("did you mean 'prompt'?") &&
                                                    ContainsSubstring("json, prompt, write_profile, length"));
  for (std::string key : {"config", "help"}) {
    std::ofstream(file) << key << ": other.yaml\n";
    CHECK_THROWS_WITH(parsed({"--config", file}), ContainsSubstring("unknown key '" + key + "'"));
  }
}

TEST_CASE("null and underscores in the file are YAML's for the program's own options too") {
  troupe::testing::temp_folder folder;
  auto file = (folder.path() / "job.yaml").string();
  std::ofstream(file) << "prompt: null\nlength: 1_000\nwrite_profile: a_1_2\n";
  auto made = parsed_with_own({"--config", file});
  CHECK(made.prompt == "\n");
  CHECK(made.length == 1000);
  CHECK(made.write_profile == "a_1_2");
}

TEST_CASE("the error for an invalid value names its option") {
  CHECK_THROWS_WITH(parsed({"--batch", "many"}),
                    ContainsSubstring("--batch: expected a whole number, got 'many'"));
  CHECK_THROWS_AS(parsed({"--batch", "many"}), troupe::bad_input);
  CHECK_THROWS_WITH(parsed({"--batch", "99999999999"}),
                    ContainsSubstring("--batch: expected a whole number from -2147483648 to 2147483647"));
  CHECK_THROWS_WITH(
      parsed({"--steps", "99999999999999999999"}),
      ContainsSubstring(
          "--steps: expected a whole number from 0 to 18446744073709551615, got '99999999999999999999'"));
  CHECK_THROWS_WITH(parsed({"--learning-rate", "1e999"}), ContainsSubstring("a number that f64 can hold"));
  CHECK_THROWS_AS(parsed({"--config", "/nonexistent/job.yaml"}), troupe::bad_input);
  CHECK_THROWS_AS(parsed({"--bacth", "8"}), CLI::ParseError);
  CHECK_THROWS_AS(parsed({"--json=perhaps"}), CLI::ParseError);
}

TEST_CASE("the help shows every field and the default the program chose") {
  CLI::App app;
  app.formatter(std::make_shared<troupe::usage::help_formatter>());
  troupe::job_options options;
  options.batch = 96;
  troupe::config::add_job_options(app, options);
  auto help = app.help();
  for (const auto& field : troupe::config::job_fields())
    CHECK_THAT(help, ContainsSubstring(field.option_name()));
  CHECK_THAT(help, ContainsSubstring("--batch N=96") && ContainsSubstring("--snapshot-interval TIME=5s"));
  CHECK(options.batch == 96);
}
