#include <sys/wait.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "support/temp_folder.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace {

struct outcome {
  int exit_code = -1;
  std::string output;
  std::string errors;
};

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Runs `troupe schedule ARGUMENTS` in a shell.
outcome schedule(const std::string& arguments) {
  troupe::testing::temp_folder folder;
  auto errors = folder.path() / "errors";
  auto command = std::string(TROUPE_PROGRAM) + " schedule " + arguments + " 2>" + errors.string();
  auto* pipe = ::popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot run " + command);
  outcome seen;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) seen.output += static_cast<char>(c);
  int status = ::pclose(pipe);
  if (WIFEXITED(status)) seen.exit_code = WEXITSTATUS(status);
  seen.errors = text_of(errors);
  return seen;
}

void check_refused(const std::string& arguments, const std::string& part) {
  CAPTURE(arguments);
  auto seen = schedule(arguments);
  CHECK(seen.exit_code == 2);
  CHECK(seen.output.empty());
  CHECK_THAT(seen.errors, ContainsSubstring(part));
}

}  // namespace

TEST_CASE("with --json one line is printed: kind, makespan, idle and peak activations per device") {
  auto seen = schedule("--kind 1f1b --stages 4 --microbatches 8 --json");
  CHECK(seen.exit_code == 0);
  CHECK(seen.output ==
        "{\"kind\":\"1f1b\",\"makespan\":33.0,\"idle\":[9.0,9.0,9.0,9.0],\"peak_activations\":[4,3,2,1]}\n");
  CHECK(seen.errors.empty());
}

TEST_CASE(
    "costs are given for a forward, an input gradient, a weight gradient, an optimizer step and a transfer") {
  auto makespan = [](const std::string& costs) {
    auto seen = schedule("--kind gpipe --stages 2 --microbatches 1 --json " + costs);
    return nlohmann::json::parse(seen.output).at("makespan").get<double>();
  };
  CHECK(makespan("") == 6);
  CHECK(makespan("--cost-f 5") == 14);
  CHECK(makespan("--cost-b 5") == 14);
  CHECK(makespan("--cost-w 5") == 14);
  CHECK(makespan("--cost-a 5") == 11);
  CHECK(makespan("--cost-comm 5") == 16);
}

TEST_CASE("fewer devices than stages share them") {
  auto seen =
      nlohmann::json::parse(schedule("--kind gpipe --stages 4 --microbatches 3 --devices 2 --json").output);
  CHECK(seen.at("idle").size() == 2);
  CHECK(seen.at("peak_activations") == nlohmann::json{6, 6});
}

TEST_CASE("without --json a drawing, the makespan, the bubble and a table are printed") {
  auto seen = schedule("--kind gpipe --stages 2 --microbatches 4 --columns 80");
  CHECK(seen.exit_code == 0);
  CHECK_THAT(seen.output, StartsWith("GPipe: 2 stages on 2 devices, 4 microbatches\n\ndevice 0 0░"));
  CHECK_THAT(seen.output,
             ContainsSubstring("makespan 15, bubble 20.0 %") && ContainsSubstring("peak activations"));
  CHECK_THAT(seen.output, ContainsSubstring("\n     1          12           3    20.0                 4\n"));
  CHECK(seen.output.find('\033') == std::string::npos);
}

TEST_CASE("with --list the actions are printed in notation, also in JSON") {
  auto seen = schedule("--kind 1f1b --stages 2 --microbatches 2 --list");
  CHECK_THAT(seen.output, EndsWith("\ndevice 0: 0F0 0F1 0B0 0B1 0A\ndevice 1: 1F0 1B0 1F1 1B1 1A\n"));
  auto line = nlohmann::json::parse(schedule("--stages 2 --microbatches 2 --list --json").output);
  CHECK(line.at("actions") == nlohmann::json{"0F0 0F1 0B0 0B1 0A", "1F0 1B0 1F1 1B1 1A"});
}

TEST_CASE("with --svg a picture is written") {
  troupe::testing::temp_folder folder;
  auto file = folder.path() / "plan.svg";
  CHECK(schedule("--kind forward_only --json --svg " + file.string()).exit_code == 0);
  CHECK_THAT(text_of(file), StartsWith("<svg") && EndsWith("</svg>\n") &&
                                ContainsSubstring("Forward only: 4 stages") &&
                                ContainsSubstring(">time in forwards<"));
  schedule("--cost-f 2.5 --json --svg " + file.string());
  CHECK_THAT(text_of(file), ContainsSubstring(">time<"));
}

TEST_CASE("bad input is refused with exit code 2 and nothing on standard output") {
  check_refused("--kind interleaved", "Choose one of gpipe, 1f1b, forward_only");
  check_refused("--stages 0", "0 stages");
  check_refused("--microbatches 0", "0 microbatches");
  check_refused("--stages 2 --devices 3", "at most as many devices as stages");
  check_refused("--devices 0", "0 devices");
  check_refused("--stages many", "stages");
  check_refused("--cost-f -1", "from 0 on");
  check_refused("--cost-a -1", "from 0 on");
  check_refused("--columns 5", "32 to 4096");
  check_refused("--svg /nowhere/at/all.svg", "/nowhere/at/all.svg");
  check_refused("--colour", "--colour");
}
