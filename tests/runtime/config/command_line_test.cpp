#include "troupe/config/command_line.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>

#include "support/temp_folder.hpp"
#include "troupe/config/job_fields.hpp"
#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;

namespace {

troupe::job_options parsed(std::vector<std::string> arguments) {
  CLI::App app;
  troupe::job_options options;
  troupe::add_job_options(app, options);
  std::ranges::reverse(arguments);  // as CLI11 wants a vector
  app.parse(arguments);
  return options;
}

}  // namespace

TEST_CASE("the command line sets fields of every type") {
  auto options =
      parsed({"--batch", "64", "--seed=7", "--learning-rate", "0.5", "--schedule", "gpipe", "--snapshot-dir",
              "runs/a", "--snapshot-interval", "250ms", "--isa", "avx2", "--json"});
  CHECK(options.batch == 64);
  CHECK(options.seed == 7);
  CHECK(options.learning_rate == 0.5);
  CHECK(options.schedule == troupe::schedule_kind::gpipe);
  CHECK(options.snapshot_dir == "runs/a");
  CHECK(options.snapshot_interval == std::chrono::milliseconds(250));
  CHECK(options.isa == "avx2");
  CHECK(options.json);
}

TEST_CASE("the option --inspect stands alone, or with an address") {
  CHECK(parsed({}).inspect.empty());
  CHECK(parsed({"--inspect"}).inspect == "127.0.0.1:0");
  CHECK(parsed({"--inspect", "--json"}).inspect == "127.0.0.1:0");
  CHECK(parsed({"--inspect", "8080", "--json"}).inspect == "8080");
  CHECK(parsed({"--inspect=127.0.0.1:80"}).inspect == "127.0.0.1:80");
  CHECK_THROWS_AS(parsed({"--isa"}), CLI::ParseError);
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

TEST_CASE("an option given twice takes its last value") {
  CHECK(parsed({"--epochs", "1", "--epochs", "2"}).epochs == 2);
}

TEST_CASE("the error for an invalid value names its option") {
  CHECK_THROWS_WITH(parsed({"--batch", "many"}),
                    ContainsSubstring("--batch: expected a whole number, got 'many'"));
  CHECK_THROWS_AS(parsed({"--batch", "many"}), troupe::bad_input);
  CHECK_THROWS_AS(parsed({"--config", "/nonexistent/job.yaml"}), troupe::bad_input);
  CHECK_THROWS_AS(parsed({"--bacth", "8"}), CLI::ParseError);
  CHECK_THROWS_AS(parsed({"--json=perhaps"}), CLI::ParseError);
}

TEST_CASE("the help shows every field and the default the program chose") {
  CLI::App app;
  troupe::job_options options;
  options.batch = 96;
  troupe::add_job_options(app, options);
  auto help = app.help();
  for (const auto& field : troupe::job_fields()) CHECK_THAT(help, ContainsSubstring(field.option_name()));
  CHECK_THAT(help, ContainsSubstring("--batch N=96") && ContainsSubstring("--snapshot-interval TIME=5s"));
  CHECK(options.batch == 96);
}
