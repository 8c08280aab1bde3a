#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "bench/benches.hpp"
#include "bench/inspector/page_reader.hpp"
#include "bench/measure/report.hpp"
#include "bench/processes/launched_job.hpp"
#include "bench/processes/subprocess.hpp"
#include "troupe/messaging/tcp_socket.hpp"

namespace troupe::bench {
namespace {

constexpr const char* page_token = "read-by-troupe-bench";

struct inspector_options {
  int pairs = 30;
  int steps = 40;
  int batch = 16;
  int num_processes = 2;
  int stages = 500;
  double window_s = 10;
  bool json = false;
};

/// What a job of a turn does beside training.
enum class watching : std::uint8_t { no_events, events, watched };

/// The options that make a job answer at a port where nobody listens yet.
class inspector_place {
 public:
  inspector_place()
      : token_file_(make_memory_file()), port_(messaging::local_port(messaging::listen_on("127.0.0.1", 0))) {
    std::ofstream(path_of(token_file_)) << page_token;
  }
  std::uint16_t port() const { return port_; }
  void add_to(std::vector<std::string>& command) const {
    command.insert(command.end(), {"--inspect", "127.0.0.1:" + std::to_string(port_), "--inspect-token-file",
                                   path_of(token_file_)});
  }

 private:
  posix::unique_fd token_file_;
  std::uint16_t port_;
};

nlohmann::json line_of(const std::vector<nlohmann::json>& printed, const std::string& event) {
  for (const auto& line : printed)
    if (line.value("event", "") == event) return line;
  throw std::runtime_error("the measured job printed no line with the event " + event);
}

/// Trains once, and returns what rank 0 printed.
nlohmann::json trained(const inspector_options& options, watching how) {
  std::vector<std::string> command = {this_program(), "bench", "worker", "gpt"};
  if (how == watching::no_events) command.insert(command.begin(), {"/usr/bin/env", "TROUPE_EVENTS=0"});
  command.insert(command.end(), {"--steps", std::to_string(options.steps), "--epochs", "1000000", "--batch",
                                 std::to_string(options.batch)});
  inspector_place place;
  std::optional<page_reader> reader;
  if (how == watching::watched) {
    place.add_to(command);
    reader.emplace(place.port(), page_token);
  }
  auto printed = run_launched(passively_waiting(command), options.num_processes);
  if (reader) reader->finish();
  return line_of(printed, "trained");
}

/// By how many percent a step takes longer.
double more_percent(double step_s, double than_s) { return 100 * (step_s / than_s - 1); }

/// Whether all jobs had the same weights.
bool measure_cost(const inspector_options& options, report& output) {
  measurements measured;
  bool equal = true;
  std::string hash;
  for (int round = 0; round < options.pairs; ++round) {
    std::map<watching, double> step_s;
    for (int turn = 0; turn < 3; ++turn) {
      auto how = static_cast<watching>((round + turn) % 3);
      auto line = trained(options, how);
      step_s[how] = line.at("step_s");
      if (how == watching::events) {
        double events = line.at("events_per_step"), event_ns = line.at("event_ns");
        measured["events_per_step"].push_back(events);
        measured["event_ns"].push_back(event_ns);
        measured["recording_percent"].push_back(100 * events * event_ns / (1e9 * step_s[how]));
      }
      if (hash.empty()) hash = line.at("weights_sha256");
      equal = equal && hash == line.at("weights_sha256").get<std::string>();
    }
    measured["step_ms"].push_back(1e3 * step_s[watching::no_events]);
    measured["events_percent"].push_back(more_percent(step_s[watching::events], step_s[watching::no_events]));
    measured["watched_percent"].push_back(
        more_percent(step_s[watching::watched], step_s[watching::no_events]));
  }
  nlohmann::ordered_json line{{"event", "cost"}, {"nproc", options.num_processes}, {"steps", options.steps}};
  add_spreads(measured, line);
  for (const auto* name : {"events_percent", "watched_percent"})
    line[std::string(name) + "_interval"] = median_interval(measured[name]);
  line["weights_equal"] = equal;
  output.add_block(line);
  return equal;
}

void print_window(const nlohmann::json& window, const page_answers& read, int num_actors, report& output) {
  double begin_s = window.at("begin_s"), end_s = window.at("end_s");
  std::vector<double> answer_ms;
  std::size_t size_bytes = 0;
  const page_answer* slowest = nullptr;
  for (const auto& one : read.answers) {
    if (one.begin_s < begin_s || one.begin_s + one.seconds > end_s) continue;
    answer_ms.push_back(1e3 * one.seconds);
    size_bytes += one.size_bytes;
    if (!slowest || one.seconds > slowest->seconds) slowest = &one;
  }
  auto share = [&](const char* field) { return 100 * window.at(field).get<double>() / (end_s - begin_s); };
  output.add_block({{"event", "answers"},
                    {"actors", num_actors},
                    {"is_paused", window.at("is_paused")},
                    {"answer_ms", spread_json(answer_ms)},
                    {"slowest", slowest ? slowest->path : ""},
                    {"bytes_per_s", static_cast<double>(size_bytes) / (end_s - begin_s)},
                    {"http_percent_of_core", share("http_s")},
                    {"process_percent_of_core", share("process_s")}});
}

void measure_answers(const inspector_options& options, report& output) {
  auto devices = (options.stages + options.num_processes - 1) / options.num_processes;
  std::vector<std::string> command = {this_program(),   "bench",
                                      "worker",         "many_stages",
                                      "--window",       std::to_string(options.window_s),
                                      "--epochs",       "1000000",
                                      "--stages",       std::to_string(options.stages),
                                      "--devices",      std::to_string(devices),
                                      "--batch",        "4",
                                      "--microbatches", "4",
                                      "--schedule",     "gpipe"};
  inspector_place place;
  place.add_to(command);
  page_reader reader(place.port(), page_token);
  auto printed = run_launched(passively_waiting(command), options.num_processes);
  auto read = reader.finish();
  auto num_actors = static_cast<int>(nlohmann::json::parse(read.newest.at("actors")).at("actors").size());
  for (const auto& line : printed)
    if (line.value("event", "") == "window") print_window(line, read, num_actors, output);
}

int run(const inspector_options& options) {
  report output("inspector", options.json);
  output.note_crowding(options.num_processes);
  bool equal = options.pairs == 0 || measure_cost(options, output);
  if (options.stages > 0) measure_answers(options, output);
  return equal ? 0 : 1;
}

}  // namespace

void add_inspector_bench(const bench_commands& to) {
  auto options = std::make_shared<inspector_options>();
  auto& command =
      *to.bench.add_subcommand("inspector", "What recorded events and a watching page cost a job");
  command
      .add_option("--pairs", options->pairs,
                  "Rounds without events, with events, and with the page's requests too; 0: none")
      ->check(CLI::Range(0, 1000));
  command.add_option("--steps", options->steps, "Steps of each of these jobs")->check(CLI::Range(8, 1000000));
  command.add_option("--batch", options->batch, "Sequences of a step, in 8 microbatches")
      ->check(CLI::Range(8, 65536));
  command.add_option("--nproc", options->num_processes, "Processes of each job")->check(CLI::Range(1, 64));
  command
      .add_option("--stages", options->stages,
                  "Stages of the job with many actors, two for each; 0: no such job")
      ->check(CLI::Range(0, 4096));
  command.add_option("--window", options->window_s, "Seconds for which it runs, and for which it is paused")
      ->check(CLI::Range(1.0, 3600.0));
  command.add_flag("--json", options->json, "One JSON object per result");
  command.callback([options, &exit_code = to.exit_code] { exit_code = run(*options); });
  add_gpt_worker(to);
  add_many_stages_worker(to);
}

}  // namespace troupe::bench
