#include <catch2/catch_test_macros.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "commands.hpp"
#include "support/temp_folder.hpp"

namespace {

/// Runs `troupe doctor` with further arguments; its exit code, and its standard output in `printed`.
int run_doctor(std::vector<std::string> arguments, std::string& printed) {
  CLI::App app;
  int exit_code = -1;
  troupe::add_doctor_command(app, exit_code);
  arguments.push_back("doctor");  // CLI11 wants a vector from the back
  std::ostringstream captured;
  auto* before = std::cout.rdbuf(captured.rdbuf());
  app.parse(arguments);
  std::cout.rdbuf(before);
  printed = captured.str();
  return exit_code;
}

}  // namespace

TEST_CASE("troupe doctor ends with 1 and the remedy when the data set is missing") {
  troupe::testing::temp_folder folder;
  std::string printed;
  CHECK(run_doctor({folder.path().string(), "--data"}, printed) == 1);
  CHECK(printed.find("-> apt-get install --reinstall dataset-fashion-mnist") != std::string::npos);
  CHECK(printed.ends_with("The demo cannot run here: see what is missing.\n"));
}

TEST_CASE("troupe doctor --json prints JSON only, and its exit code agrees") {
  std::string printed;
  auto exit_code = run_doctor({"--json"}, printed);
  std::istringstream lines(printed);
  nlohmann::json last;
  for (std::string line; std::getline(lines, line);) last = nlohmann::json::parse(line);
  CHECK(last["event"] == "done");
  CHECK(last["demo_can_run"] == (exit_code == 0));
}
