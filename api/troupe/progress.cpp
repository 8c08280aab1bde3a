#include "troupe/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "troupe/detail/clock_text.hpp"
#include "troupe/schedule/text/draw.hpp"
#include "troupe/snapshot/snapshot_store.hpp"
#include "troupe/trace/trace.hpp"

namespace troupe {
namespace {

constexpr std::int64_t live_interval_ns = 100'000'000;
constexpr std::int64_t quiet_interval_ns = 2'000'000'000;

template <class... Args>
std::string format(const char* pattern, Args... args) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, args...);
  return text;
}

std::string percent(double fraction) { return format("%.1f %%", 100 * fraction); }

/// Samples in a second; "-" before the first is known.
std::string rate_text(double samples_per_s) {
  return samples_per_s > 0 ? format("%.0f", samples_per_s) : std::string("-");
}

std::string time_left(const step_event& event, int batch) {
  if (event.samples_per_s <= 0) return "-";
  return detail::clock_text(static_cast<double>(event.target_step - event.step) * batch /
                            event.samples_per_s);
}

/// What is on disk after `steps` optimizer steps, of which a snapshot counts `steps_of_run` as one.
std::string line_on_snapshots(const std::filesystem::path& folder, std::uint64_t steps,
                              std::uint64_t steps_of_run) try {
  for (const auto& info : snapshot::snapshot_store({.folder = folder}).list()) {
    if (info.state != snapshot::snapshot_state::ok) continue;
    auto newest = info.step * steps_of_run;
    return "snapshots: " + folder.string() +
           (newest == steps ? "" : " (the newest is of step " + std::to_string(newest) + ")");
  }
  return "no snapshots could be written to " + folder.string();
} catch (const files::snapshot_error& problem) {
  return std::string("snapshots: ") + problem.what();
}

}  // namespace

progress::progress(const World& world)
    : options_(world.options()),
      is_active_(world.rank() == 0),
      is_terminal_(::isatty(STDOUT_FILENO) != 0),
      num_devices_(options_.stages == 0
                       ? world.num_devices()
                       : std::min(options_.stages * options_.replicas, world.num_devices())) {}

trainer_callbacks progress::callbacks() {
  return {[this](const step_event& event) { on_step(event); },
          [this](const recovery_event& event) { on_recovered(event); },
          [this](const resume_event& event) { on_resumed(event); }};
}

void progress::print(const std::string& line) {
  clear_line();
  std::fprintf(stdout, "%s\n", line.c_str());
  std::fflush(stdout);
}

void progress::clear_line() {
  if (line_open_) std::fputs("\r\033[K", stdout);
  line_open_ = false;
}

void progress::on_step(const step_event& event) {
  has_only_resumed_ = false;
  if (!is_active_) return;
  if (options_.json) {
    print(nlohmann::json{
        {"event", "step"}, {"step", event.step}, {"loss", event.loss}, {"samples_per_s", event.samples_per_s}}
              .dump());
    return;
  }
  auto now = trace::now_ns();
  bool last = event.step == event.target_step;
  if (!last && now - last_print_ns_ < (is_terminal_ ? live_interval_ns : quiet_interval_ns)) return;
  last_print_ns_ = now;
  auto epoch = static_cast<double>(event.step) / static_cast<double>(event.steps_per_epoch);
  auto line =
      format("epoch %.2f  step %llu/%llu  loss %.4f  %s samples/s  %s left", epoch,
             static_cast<unsigned long long>(event.step), static_cast<unsigned long long>(event.target_step),
             event.loss, rate_text(event.samples_per_s).c_str(), time_left(event, options_.batch).c_str());
  if (!is_terminal_ || last) return print(line);
  std::fprintf(stdout, "\r\033[K%s", line.c_str());
  std::fflush(stdout);
  line_open_ = true;
}

void progress::on_resumed(const resume_event& event) {
  has_only_resumed_ = event.found;
  if (!is_active_) return;
  if (options_.json)
    return print(nlohmann::json{
        {"event", "resumed"}, {"step", event.step}, {"from", event.found ? "snapshot" : "initial weights"}}
                     .dump());
  auto folder = options_.snapshot_dir.string();
  print(event.found ? "resumed from step " + std::to_string(event.step) + " in " + folder
                    : "no snapshot to resume from in " + folder + ": starting from the initial weights");
}

void progress::on_recovered(const recovery_event& event) {
  if (!is_active_) return;
  if (options_.json)
    return print(nlohmann::json{{"event", "recovered"},
                                {"rank", event.rank},
                                {"seconds", event.seconds},
                                {"generation", event.generation}}
                     .dump());
  if (event.rank < 0) return print(format("recovered in %.3f s: %s", event.seconds, event.cause.c_str()));
  print(format("rank %d was lost (%s); training went on after %.3f s", event.rank, event.cause.c_str(),
               event.seconds));
}

void progress::on_fitted(const fit_result& fitted, const plan& planned) {
  bool has_trained = !std::exchange(has_only_resumed_, false);
  if (!is_active_ || options_.json) return;
  if (!has_trained)
    print("nothing was trained: the snapshot has all steps of this fit. Raise --steps or --epochs for more");
  schedule::text_drawing drawing{100, is_terminal_};
  auto name = planned.kind == schedule_kind::custom ? "the plan in the file" : to_string(planned.kind);
  print("\nplanned: one step of " + std::string(name) + ", all stages alike");
  print(draw_text(simulate(planned, {}), drawing));
  if (!fitted.last_step.devices.empty()) {
    print("measured: the last step");
    print(draw_text(fitted.last_step, drawing));
  }
  auto bubble =
      "bubble: planned " + percent(fitted.planned_bubble) + ", measured " + percent(fitted.measured_bubble);
  auto cores = static_cast<int>(std::thread::hardware_concurrency());
  if (cores > 0 && num_devices_ > cores)
    bubble += format(" (%d devices share %d cores: they wait for each other's turn)", num_devices_, cores);
  print(bubble);
  print(format("step: %.2f ms, at most %d saved microbatches in a stage", 1e3 * fitted.step_s,
               fitted.peak_activations));
  if (!fitted.trace.empty())
    print("trace: " + options_.trace_dir.string() + " (open in ui.perfetto.dev)");
  else if (!options_.trace_dir.empty())
    print("no trace could be written to " + options_.trace_dir.string());
  if (!options_.snapshot_dir.empty())
    print(line_on_snapshots(options_.snapshot_dir, fitted.steps,
                            static_cast<std::uint64_t>(planned.flush_every)));
}

void progress::on_memory(const memory_report& report) {
  if (is_active_) print(options_.json ? report.to_json() : report.to_text());
}

void progress::on_done(const evaluation_result& evaluation, const std::string& weights_sha256) {
  if (!is_active_) return;
  if (options_.json)
    return print(nlohmann::json{{"event", "done"},
                                {"weights_sha256", weights_sha256},
                                {"accuracy", evaluation.accuracy},
                                {"loss", evaluation.loss}}
                     .dump());
  print(format("test accuracy %.4f, test loss %.4f (%lld samples)", evaluation.accuracy, evaluation.loss,
               static_cast<long long>(evaluation.num_samples)));
  print("weights sha256 " + weights_sha256);
}

}  // namespace troupe
