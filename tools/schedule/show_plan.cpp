#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>

#include "schedule_request.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/files/durable_file.hpp"
#include "troupe/files/snapshot_error.hpp"
#include "troupe/schedule/gradient_order.hpp"
#include "troupe/schedule/schedule_table.hpp"
#include "troupe/schedule/simulation/measured.hpp"
#include "troupe/schedule/text/draw.hpp"
#include "troupe/schedule/text/plan_csv.hpp"
#include "troupe/usage/number_text.hpp"

namespace troupe {
namespace {

std::string headline(const schedule_request& request, const plan& made) {
  auto title = request.plan_file ? *request.plan_file : std::string(schedule::schedule_of(made.kind).title);
  return title + ": " + usage::counted(made.num_stages, "stage", "stages") + " on " +
         usage::counted(made.num_devices(), "device", "devices") + ", " +
         (made.mesh.num_replicas == 1
              ? ""
              : usage::counted(made.mesh.num_replicas, "replica", "replicas") + ", ") +
         (made.flush_every == 1
              ? ""
              : usage::counted(made.flush_every, "optimizer step", "optimizer steps") + " of ") +
         usage::counted(made.microbatches_per_step(), "microbatch", "microbatches") +
         (schedule::gradient_order_of(made) == schedule::gradient_order::ascending
              ? ""
              : ", weight gradients in descending order");
}

double peak_bytes(const schedule::costed_plan& shown, std::size_t device) {
  return shown.bytes_per_chunk * shown.ran.peak_activations[device];
}

/// The options of a training program that run the plan.
std::string run_options(const schedule_request& request, const plan& made) {
  auto text = "--schedule " + std::string(to_string(made.kind)) + " --devices " +
              std::to_string(made.num_devices()) + " --stages " + std::to_string(made.num_stages) +
              " --microbatches " + std::to_string(made.microbatches_per_step());
  if (request.batch) text += " --batch " + std::to_string(*request.batch);
  return text;
}

bool has_one_sample_microbatches(const schedule_request& request, const plan& made) {
  return request.batch && *request.batch == made.microbatches_per_step() && *request.batch > 1;
}

/// What --best chose, as a program is told it.
void print_choice(const schedule_request& request, const plan& made) {
  std::printf("\nRun it with %s\n", run_options(request, made).c_str());
  if (made.num_devices() > 1)
    std::printf("(in one process; in %d processes, with --devices 1)\n", made.num_devices());
  if (has_one_sample_microbatches(request, made))
    std::printf(
        "A microbatch has one sample. That is the fastest only if a sample costs as much alone as among "
        "others:\ngive --cost-fixed what a microbatch costs besides. BatchNorm needs more than one "
        "sample.\n");
}

std::string notation(const std::vector<action>& actions) {
  std::string text;
  for (const auto& op : actions) text += (text.empty() ? "" : " ") + to_string(op);
  return text;
}

schedule::text_drawing drawing_for(const schedule_request& request) {
  schedule::text_drawing how{.color = ::isatty(STDOUT_FILENO) == 1};
  winsize terminal = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &terminal) == 0 && terminal.ws_col > 0)
    how.columns = std::clamp<int>(terminal.ws_col, 32, 200);
  if (request.columns) how.columns = *request.columns;
  return how;
}

void print_table(const schedule_request& request, const schedule::costed_plan& shown) {
  const auto& ran = shown.ran;
  auto summary = schedule::summarize(ran);
  std::printf("\nmakespan %.6g, bubble %.1f %%\n\n", ran.makespan, 100 * summary.bubble_fraction);
  std::printf("%6s  %10s  %10s  %6s  %16s%s\n", "device", "busy", "idle", "idle %", "peak activations",
              request.memory_per_chunk ? "       peak memory" : "");
  for (std::size_t device = 0; device < ran.devices.size(); ++device) {
    double share = ran.makespan > 0 ? 100 * ran.idle[device] / ran.makespan : 0;
    std::printf("%6zu  %10.6g  %10.6g  %6.1f  %16d", device, summary.busy[device], ran.idle[device], share,
                ran.peak_activations[device]);
    if (request.memory_per_chunk) std::printf("  %16s", usage::bytes_text(peak_bytes(shown, device)).c_str());
    std::printf("\n");
  }
}

void print_text(const schedule_request& request, const schedule::costed_plan& shown) {
  auto drawing = draw_text(shown.ran, drawing_for(request));
  std::printf("%s\n\n%s", headline(request, shown.made).c_str(), drawing.c_str());
  print_table(request, shown);
  if (request.best) print_choice(request, shown.made);
  if (!request.list) return;
  std::printf("\n");
  for (std::size_t device = 0; device < shown.made.devices.size(); ++device)
    std::printf("device %zu: %s\n", device, notation(shown.made.devices[device]).c_str());
}

void print_json(const schedule_request& request, const schedule::costed_plan& shown) {
  const auto& [made, costs, ran, bytes] = shown;
  nlohmann::ordered_json line = {{"kind", to_string(made.kind)},
                                 {"stages", made.num_stages},
                                 {"devices", made.num_devices()},
                                 {"microbatches", made.microbatches_per_step()},
                                 {"makespan", ran.makespan},
                                 {"idle", ran.idle},
                                 {"peak_activations", ran.peak_activations}};
  if (made.flush_every > 1) line["flush_every"] = made.flush_every;
  if (made.mesh.num_replicas > 1) line["replicas"] = made.mesh.num_replicas;
  if (auto order = schedule::gradient_order_of(made); order != schedule::gradient_order::ascending)
    line["gradient_order"] = to_string(order);
  if (request.memory_per_chunk) {
    auto& peaks = line["peak_bytes"] = nlohmann::ordered_json::array();
    for (std::size_t device = 0; device < made.devices.size(); ++device)
      peaks.push_back(static_cast<std::uint64_t>(peak_bytes(shown, device)));
  }
  if (request.best) {
    line["options"] = run_options(request, made);
    line["one_sample_microbatches"] = has_one_sample_microbatches(request, made);
  }
  if (request.list) {
    auto& actions = line["actions"] = nlohmann::ordered_json::array();
    for (const auto& device : made.devices) actions.push_back(notation(device));
  }
  std::printf("%s\n", line.dump().c_str());
}

void write_file(const std::string& file, const std::string& text) {
  try {
    files::write_durably(file, std::as_bytes(std::span(text)));
  } catch (const files::snapshot_error& problem) {
    throw bad_input(problem.what());
  }
}

std::string svg_of(const schedule_request& request, const schedule::costed_plan& shown) {
  std::vector<std::string> notes;
  if (request.memory_per_chunk)
    for (std::size_t device = 0; device < shown.made.devices.size(); ++device)
      notes.push_back("keeps " + usage::bytes_text(peak_bytes(shown, device)));
  // The costs have no fixed unit. If a forward costs 1, forwards are the unit.
  return schedule::draw_svg(shown.ran, headline(request, shown.made),
                            shown.costs.forward == 1 ? "forwards" : "", notes);
}

}  // namespace

void show_plan(const schedule_request& request, const schedule::costed_plan& shown) {
  if (request.svg_file) write_file(*request.svg_file, svg_of(request, shown));
  if (request.csv_file) write_file(*request.csv_file, schedule::to_csv(shown.made));
  if (request.json)
    print_json(request, shown);
  else
    print_text(request, shown);
}

}  // namespace troupe
