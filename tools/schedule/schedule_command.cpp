#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "commands.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/schedule/draw.hpp"
#include "troupe/schedule/generators/schedule_table.hpp"
#include "troupe/schedule/measured.hpp"
#include "troupe/schedule/plan.hpp"
#include "troupe/schedule/simulate.hpp"
#include "troupe/snapshot/durable_file.hpp"
#include "troupe/snapshot/snapshot_error.hpp"

namespace troupe {
namespace {

/// The options of the command line.
struct schedule_request {
  std::string kind = "1f1b";
  int stages = 4;
  int microbatches = 8;
  std::optional<int> devices;  ///< none: one per stage
  action_costs costs;
  std::string svg_file;
  std::optional<int> columns;  ///< none: the terminal's
  bool json = false;
  bool list = false;
};

plan requested_plan(const schedule_request& request) {
  return make_plan({.kind = schedule_kind_from(request.kind),
                    .num_stages = request.stages,
                    .num_microbatches = request.microbatches,
                    .num_devices = request.devices.value_or(request.stages)});
}

std::string counted(int number, const char* one, const char* many) {
  return std::to_string(number) + " " + (number == 1 ? one : many);
}

std::string headline(const plan& made) {
  return std::string(schedule_of(made.kind).title) + ": " + counted(made.num_stages, "stage", "stages") + " on " +
         counted(made.num_devices(), "device", "devices") + ", " +
         counted(made.num_microbatches, "microbatch", "microbatches");
}

std::string notation(const std::vector<action>& actions) {
  std::string text;
  for (const auto& op : actions) text += (text.empty() ? "" : " ") + to_string(op);
  return text;
}

text_drawing drawing_for(const schedule_request& request) {
  text_drawing how{.color = ::isatty(STDOUT_FILENO) == 1};
  winsize terminal = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &terminal) == 0 && terminal.ws_col > 0)
    how.columns = std::clamp<int>(terminal.ws_col, 32, 200);
  if (request.columns) how.columns = *request.columns;
  return how;
}

void print_table(const timeline& ran) {
  auto summary = summarize(ran);
  std::printf("\nmakespan %.6g, bubble %.1f %%\n\n", ran.makespan, 100 * summary.bubble_fraction);
  std::printf("%6s  %10s  %10s  %6s  %16s\n", "device", "busy", "idle", "idle %", "peak activations");
  for (std::size_t device = 0; device < ran.devices.size(); ++device) {
    double share = ran.makespan > 0 ? 100 * ran.idle[device] / ran.makespan : 0;
    std::printf("%6zu  %10.6g  %10.6g  %6.1f  %16d\n", device, summary.busy[device], ran.idle[device], share,
                ran.peak_activations[device]);
  }
}

void print_text(const schedule_request& request, const plan& made, const timeline& ran) {
  auto drawing = draw_text(ran, drawing_for(request));
  std::printf("%s\n\n%s", headline(made).c_str(), drawing.c_str());
  print_table(ran);
  if (!request.list) return;
  std::printf("\n");
  for (std::size_t device = 0; device < made.devices.size(); ++device)
    std::printf("device %zu: %s\n", device, notation(made.devices[device]).c_str());
}

void print_json(const schedule_request& request, const plan& made, const timeline& ran) {
  nlohmann::ordered_json line = {{"kind", to_string(made.kind)},
                                 {"makespan", ran.makespan},
                                 {"idle", ran.idle},
                                 {"peak_activations", ran.peak_activations}};
  if (request.list) {
    auto& actions = line["actions"] = nlohmann::ordered_json::array();
    for (const auto& device : made.devices) actions.push_back(notation(device));
  }
  std::printf("%s\n", line.dump().c_str());
}

void write_svg(const schedule_request& request, const plan& made, const timeline& ran) {
  // The costs have no fixed unit. If a forward costs 1, forwards are the unit.
  auto drawing = draw_svg(ran, headline(made), request.costs.forward == 1 ? "forwards" : "");
  try {
    write_durably(request.svg_file, std::as_bytes(std::span(drawing)));
  } catch (const snapshot_error& problem) {
    throw bad_input(problem.what());
  }
}

void run_schedule(const schedule_request& request) {
  auto made = requested_plan(request);
  auto ran = simulate(made, request.costs);
  if (!request.svg_file.empty()) write_svg(request, made, ran);
  if (request.json)
    print_json(request, made, ran);
  else
    print_text(request, made, ran);
}

}  // namespace

void add_schedule_command(CLI::App& app, int& exit_code) {
  auto request = std::make_shared<schedule_request>();
  auto* command = app.add_subcommand("schedule", "Draw and simulate a pipeline schedule before running it");
  command->add_option("--kind", request->kind, "gpipe, 1f1b or forward_only")->capture_default_str();
  command->add_option("--stages", request->stages, "Pipeline stages")->capture_default_str();
  command->add_option("--microbatches", request->microbatches, "Microbatches of a step")
      ->capture_default_str();
  command->add_option("--devices", request->devices,
                      "Devices that share the stages in blocks (default: one a stage)");
  command->add_option("--cost-f", request->costs.forward, "Duration of a forward")->capture_default_str();
  command->add_option("--cost-b", request->costs.input_gradient, "Duration of an input gradient")
      ->capture_default_str();
  command->add_option("--cost-w", request->costs.weight_gradient, "Duration of a weight gradient")
      ->capture_default_str();
  command->add_option("--cost-a", request->costs.apply, "Duration of a stage's optimizer step")
      ->capture_default_str();
  command->add_option("--cost-comm", request->costs.communication, "Delay between devices")
      ->capture_default_str();
  command->add_option("--svg", request->svg_file, "Also draw a picture into this file");
  command->add_option("--columns", request->columns, "Width of the drawing (default: the terminal's)");
  command->add_flag("--json", request->json, "Print one line of JSON instead");
  command->add_flag("--list", request->list, "Also print every device's actions, for example 2F0");
  command->callback([request, &exit_code] {
    run_schedule(*request);
    exit_code = 0;
  });
}

}  // namespace troupe
