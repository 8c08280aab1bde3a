#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/processes/run_process.hpp"
#include "support/temp_folder.hpp"
#include "support/text_of.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using namespace troupe::testing;

namespace {

/// Runs `troupe schedule ARGUMENTS` in a shell.
process_result schedule(const std::string& arguments) {
  return run_in_shell(std::string(TROUPE_PROGRAM) + " schedule " + arguments);
}

void check_refused(const std::string& arguments, const std::string& part) {
  CAPTURE(arguments);
  auto seen = schedule(arguments);
  CHECK(seen.exit_code == 2);
  CHECK(seen.output.empty());
  CHECK_THAT(seen.errors, ContainsSubstring(part));
}

}  // namespace

TEST_CASE(
    "with --json one line is printed: the plan's numbers, makespan, idle and peak activations per device") {
  auto seen = schedule("--kind 1f1b --stages 4 --microbatches 8 --json");
  CHECK(seen.exit_code == 0);
  CHECK(seen.output ==
        "{\"kind\":\"1f1b\",\"stages\":4,\"devices\":4,\"microbatches\":8,\"makespan\":33.0,\"idle\":[9.0,9."
        "0,9.0,9.0],\"peak_activations\":[4,3,2,1]}\n");
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

TEST_CASE("the reference names the fields of --json, in their order") {
  auto line = nlohmann::ordered_json::parse(
      schedule("--kind pipedream_2bw --replicas 2 --flush-every 2 --memory-per-chunk 1K --list --json")
          .output);
  std::string printed, documented;
  for (const auto& [name, value] : line.items()) {
    printed += name + '\n';
    if (name == "replicas") printed += "gradient_order\n";                      // of some plans in files only
    if (name == "peak_bytes") printed += "options\none_sample_microbatches\n";  // with --best only
  }
  std::istringstream page(text_of(REFERENCE_PAGE));
  bool is_in_table = false;
  for (std::string row; std::getline(page, row);) {
    if (row.starts_with("| field of a schedule |"))
      is_in_table = true;
    else if (!row.starts_with('|'))
      is_in_table = false;
    else if (is_in_table && row.starts_with("| `"))
      documented += row.substr(3, row.find('`', 3) - 3) + '\n';
  }
  CHECK(documented == printed);
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
  temp_folder folder;
  auto file = folder.path() / "plan.svg";
  CHECK(schedule("--kind forward_only --json --svg " + file.string()).exit_code == 0);
  CHECK_THAT(text_of(file), StartsWith("<svg") && EndsWith("</svg>\n") &&
                                ContainsSubstring("Forward only: 4 stages") &&
                                ContainsSubstring(">time in forwards<"));
  schedule("--cost-f 2.5 --json --svg " + file.string());
  CHECK_THAT(text_of(file), ContainsSubstring(">time<"));
}

TEST_CASE("every kind of the table is drawn, with as many devices as it needs") {
  auto line = [](const std::string& arguments) {
    return nlohmann::json::parse(schedule(arguments + " --json").output);
  };
  for (std::string kind : {"gpipe", "1f1b", "forward_only", "zb_h1", "zb_h2"})
    CHECK(line("--kind " + kind).at("devices") == 4);
  for (std::string kind : {"interleaved_1f1b", "zb_v", "dualpipe_v", "looped_bfs"}) {
    CHECK(line("--kind " + kind + " --stages 8").at("devices") == 4);
    CHECK(line("--kind " + kind + " --devices 4").at("stages") == 8);
  }
  CHECK(line("--kind zb_v --devices 4").at("peak_activations") == nlohmann::json{8, 8, 8, 8});
  CHECK_THAT(schedule("--kind zb_h1 --columns 80").output,
             StartsWith("ZB-H1: 4 stages on 4 devices, 8 microb"));
  CHECK_THAT(schedule("--kind dualpipe_v --devices 2").output,
             StartsWith("DualPipeV: 4 stages on 2 devices"));
}

TEST_CASE("PipeDream-2BW is drawn from one flush to the next") {
  auto drawn = schedule("--kind pipedream_2bw --flush-every 3 --stages 2 --microbatches 2 --list");
  CHECK_THAT(drawn.output,
             ContainsSubstring("2 stages on 2 devices, 3 optimizer steps of 2 microbatches") &&
                 ContainsSubstring("device 1: 1F0 1B0 1F1 1B1 1A 1F2 1B2 1F3 1B3 1A1 1F4 1B4 1F5 1B5 1A2"));
  CHECK_THAT(schedule("--kind pipedream_2bw --flush-every 3 --stages 2 --microbatches 2 --json").output,
             ContainsSubstring("\"microbatches\":2") && ContainsSubstring("\"flush_every\":3") &&
                 ContainsSubstring("\"idle\":[3.0,3.0]") && ContainsSubstring("\"makespan\":21.0"));
  check_refused("--kind 1f1b --flush-every 3", "1f1b flushes after every optimizer step, not after 3");
  check_refused("--best --kind pipedream_2bw", "without --best");
}

TEST_CASE("replicas add a G to each stage, which takes its time") {
  auto drawn = schedule("--kind gpipe --stages 2 --microbatches 1 --replicas 3 --cost-g 4 --list");
  CHECK_THAT(drawn.output, ContainsSubstring("device 0: 0F0 0B0 0G 0A") && ContainsSubstring("3 replicas"));
  auto line = nlohmann::json::parse(
      schedule("--kind gpipe --stages 2 --microbatches 1 --replicas 3 --cost-g 4 --json").output);
  CHECK(line.at("replicas") == 3);
  CHECK(line.at("devices") == 2);
  CHECK(line.at("makespan") == 10);
  check_refused("--replicas 0", "0 replicas. Give at least 1");
}

TEST_CASE("memory is counted per device, as text, JSON and in the picture") {
  temp_folder folder;
  auto file = folder.path() / "plan.svg";
  std::string plan = "--kind 1f1b --stages 2 --microbatches 4 --memory-per-chunk 1K ";
  CHECK(nlohmann::json::parse(schedule(plan + "--json --svg " + file.string()).output).at("peak_bytes") ==
        nlohmann::json{2048, 1024});
  CHECK_THAT(text_of(file), ContainsSubstring(">keeps 2 KiB<") && ContainsSubstring(">keeps 1 KiB<"));
  auto seen = schedule(plan + "--memory 2K --columns 80");
  CHECK(seen.exit_code == 0);
  CHECK_THAT(seen.output,
             ContainsSubstring("       peak memory\n") && ContainsSubstring("             2 KiB\n"));
}

TEST_CASE("a plan that does not fit is refused with what is too much, and what would fit") {
  std::string plan = "--kind gpipe --stages 4 --microbatches 8 --memory-per-chunk 100 ";
  auto seen = schedule(plan + "--memory 500");
  CHECK(seen.exit_code == 2);
  CHECK_THAT(seen.errors,
             ContainsSubstring("device 0 keeps 8 activations of 100 B, 800 B in all, which is "
                               "300 B more than --memory") &&
                 ContainsSubstring("zb_v with 8 stages and 8 microbatches fits: it keeps 400 B"));
  check_refused(plan + "--memory 300", "more than --memory; no schedule fits into 300 B a device");
}

TEST_CASE("the fastest plan that fits is what --best chooses") {
  auto chosen = [](const std::string& arguments) {
    return nlohmann::json::parse(schedule("--best --json " + arguments).output);
  };
  auto fast = chosen("--stages 4 --microbatches 8 --memory-per-chunk 100");
  auto small = chosen("--stages 4 --microbatches 8 --memory-per-chunk 100 --memory 400");
  CHECK(fast.at("makespan") <= small.at("makespan"));
  CHECK(small.at("makespan") < 33);  // of 1F1B, which keeps 400 bytes too
  for (int peak : small.at("peak_bytes")) CHECK(peak <= 400);
  CHECK(chosen("--kind interleaved_1f1b --devices 2 --most-chunks 3").at("stages") == 6);
  CHECK(chosen("--devices 4 --kind 1f1b --batch 32").at("microbatches") == 32);
  CHECK(chosen("--devices 4 --kind 1f1b --batch 32 --cost-fixed 1").at("microbatches") == 1);
}

TEST_CASE("with --best the options that run its plan are printed, and microbatches of one sample warned of") {
  auto best = schedule("--best --devices 2 --kind zb_v --batch 8 --columns 60");
  CHECK_THAT(
      best.output,
      ContainsSubstring("Run it with --schedule zb_v --devices 2 --stages 4 --microbatches 8 --batch 8") &&
          ContainsSubstring("in 2 processes, with --devices 1") &&
          ContainsSubstring("A microbatch has one sample") && ContainsSubstring("--cost-fixed"));
  auto more = schedule("--best --devices 2 --kind 1f1b --microbatches 4 --columns 60").output;
  CHECK_THAT(more,
             ContainsSubstring("Run it with --schedule 1f1b --devices 2 --stages 2 --microbatches 4\n") &&
                 !ContainsSubstring("one sample"));
  CHECK_THAT(schedule("--kind 1f1b --columns 60").output, !ContainsSubstring("Run it with"));
  auto line = nlohmann::json::parse(
      schedule("--best --devices 2 --kind 1f1b --batch 4 --cost-fixed 1 --json").output);
  CHECK(line.at("options") == "--schedule 1f1b --devices 2 --stages 2 --microbatches 1 --batch 4");
  CHECK(line.at("one_sample_microbatches") == false);
}

TEST_CASE("the help of each command has no names of C++ types and no limits that nobody meets") {
  for (std::string command :
       {"schedule", "events", "plan", "launch", "inspect", "doctor", "snapshot export", "snapshot list"}) {
    CAPTURE(command);
    auto help = run_in_shell(std::string(TROUPE_PROGRAM) + " " + command + " --help").output;
    CHECK_THAT(help, ContainsSubstring("--help"));
    for (std::string raw :
         {" INT ", " INT=", ":INT", "UINT", "FLOAT", "TEXT:", " in [", "Excludes:", "Needs:", "REQUIRED"})
      CHECK_THAT(help, !ContainsSubstring(raw));
  }
  auto help = schedule("--help").output;
  CHECK_THAT(help, ContainsSubstring("--stages N (not with --plan)") && ContainsSubstring("--cost-f X=1") &&
                       ContainsSubstring("--batch N (needs --best)"));
}

TEST_CASE("a plan is written as CSV and drawn from it") {
  temp_folder folder;
  auto file = (folder.path() / "plan.csv").string();
  auto made = nlohmann::json::parse(schedule("--kind zb_v --devices 2 --json --list --csv " + file).output);
  CHECK_THAT(text_of(file), StartsWith("0F0,0F1,0F2,3F0,3I0,3W0,") && !ContainsSubstring("A"));
  auto read = nlohmann::json::parse(schedule("--json --list --plan " + file).output);
  CHECK(read.at("kind") == "custom");
  for (auto name : {"stages", "devices", "microbatches", "makespan", "idle", "peak_activations", "actions"})
    CHECK(read.at(name) == made.at(name));
  CHECK_THAT(schedule("--columns 80 --plan " + file).output, StartsWith(file + ": 4 stages on 2 devices"));
  CHECK_FALSE(read.contains("gradient_order"));
  std::ofstream(file) << "0F0,0F1,0B1,0B0\n1F0,1F1,1B1,1B0\n";
  CHECK_THAT(schedule("--columns 80 --plan " + file).output,
             ContainsSubstring("2 microbatches, weight gradients in descending order"));
  CHECK(nlohmann::json::parse(schedule("--json --plan " + file).output).at("gradient_order") == "descending");
}

TEST_CASE("a plan file that is no plan is refused with line, rank and cell") {
  temp_folder folder;
  auto file = (folder.path() / "plan.csv").string();
  auto refuses = [&file](const std::string& text, const std::string& part) {
    std::ofstream(file) << text;
    check_refused("--plan " + file, part);
  };
  refuses("0F0,0B0\n1F0,1Q0\n", file + ": line 2 (rank 1), cell 2: '1Q0' is no action");
  refuses("0F0,0B0\n1F0\n", "1B0 is missing from line 2 (rank 1)");
  refuses("0F0,0F0,0B0\n", "0F0 [line 1 (rank 0), cell 1; line 1 (rank 0), cell 2] occurs 2 times");
  refuses("0F1,0F0,0B0,0B1\n", "after 0F1 [line 1 (rank 0), cell 1]");
  refuses("0B0,0F0\n", "deadlock: 0B0 [line 1 (rank 0), cell 1] waits for 0F0");
  check_refused("--plan /nowhere/at/all.csv", "/nowhere/at/all.csv cannot be read");
  check_refused("--plan " + folder.path().string(), "cannot be read");
}

TEST_CASE("bad input is refused with exit code 2 and nothing on standard output") {
  check_refused("--memory -1 --memory-per-chunk 1G",
                "--memory: expected a whole number of bytes from 0 to 8T, such as 64M or 2G, got '-1'");
  check_refused("--memory-per-chunk 18446744073709551615", "--memory-per-chunk: expected a whole number of");
  check_refused("--memory-per-chunk 18446744073709551608G", "got '18446744073709551608G'");
  check_refused("--memory-per-chunk 1.5M", "got '1.5M'");
  check_refused("--memory 0 --memory-per-chunk 1K", "more than --memory");
  check_refused("--svg= --json", "--svg needs a value after the '=', got none");
  check_refused("--svg --json", "--svg needs a value, got the option --json");
  check_refused("--json=maybe", "--json: expected true or false, got 'maybe'");
  check_refused("--stages 99999999999999999999",
                "--stages: expected a whole number of at most 9223372036854775807");
  check_refused("--plan \"\"", "--plan names no file");
  check_refused("--svg /tmp/x --csv /tmp/x", "Name two");
  check_refused("--devices 2147483647 --best", "--devices");
  check_refused("--most-chunks 2147483647 --best", "--most-chunks");
  check_refused("--best --cost-f -1", "costs are durations");
  check_refused("--kind interleaved", "Choose one of gpipe, 1f1b, forward_only, interleaved_1f1b");
  check_refused("--kind custom", "unknown schedule 'custom'");
  check_refused("--kind 1F1B", "unknown schedule '1F1B'; did you mean '1f1b'? Choose one of gpipe");
  check_refused("--kind ZB-H1", "did you mean 'zb_h1'?");
  check_refused("--kind interleaved_1f1b --devices 4 --microbatches 10", "Use 8 or 12, not 10");
  check_refused("--kind zb_v --stages 5 --devices 2", "Use 4 stages");
  check_refused("--kind dualpipe_v --devices 4 --microbatches 7", "Use 8 or more, not 7");
  check_refused("--plan x.csv --kind 1f1b", "--plan");
  check_refused("--plan x.csv --stages 4", "--plan");
  check_refused("--plan x.csv --best", "--plan");
  check_refused("--memory 1K", "--memory-per-chunk");
  check_refused("--memory-per-chunk much", "much");
  check_refused("--batch 8", "--best");
  check_refused("--best --batch 0", "--batch 0 is no number of samples from 1");
  check_refused("--best --stages 0", "0 stages");
  check_refused("--kind zb_v --devices 0", "0 devices");
  check_refused("--cost-fixed 0.5", "--best");
  check_refused("--best --cost-fixed 2", "fixed cost");
  check_refused("--best --kind forward_only", "forward_only");
  check_refused("--best --devices 0", "0 devices");
  check_refused("--best --kind dualpipe_v --devices 4 --microbatches 3", "none of the schedules allows");
  check_refused("--csv /nowhere/at/all.csv", "/nowhere/at/all.csv");
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

TEST_CASE("an option that is given twice, or without its value, is named") {
  check_refused("--kind 1f1b --kind gpipe --stages 2 --microbatches 2", "--kind is given more than once");
  check_refused("--kind 1f1b --stages 2 --microbatches", "--microbatches needs a value after it, got none");
}
