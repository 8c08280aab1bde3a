#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/inspector/names.hpp"
#include "troupe/inspector/views.hpp"

namespace troupe {
namespace {

/// Writes one metric after the other: its help, its type, its samples.
class metric_writer {
 public:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_ +=
        "# HELP " + name_ + " " + std::string(help) + "\n# TYPE " + name_ + " " + std::string(type) + "\n";
  }
  void add(double value, const std::string& labels = {}) {
    std::array<char, 32> digits{};
    auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    text_ +=
        name_ + (labels.empty() ? "" : "{" + labels + "}") + " " + std::string(digits.data(), end) + "\n";
  }
  void gauge(std::string_view name, std::string_view help, double value) {
    begin(name, "gauge", help);
    add(value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string name_, text_;
};

std::string rank_label(int rank) { return "rank=\"" + std::to_string(rank) + "\""; }

/// One counter of each process. It begins anew with a new process, as counters may.
void per_rank(metric_writer& out, const job_view& view, std::string_view name, std::string_view help,
              std::uint64_t node_report::*counted) {
  out.begin(name, "counter", help);
  for (const auto& [rank, node] : view.nodes)
    out.add(static_cast<double>(node.report.*counted), rank_label(rank));
}

void write_job(metric_writer& out, const job_view& view, const metrics_history& metrics) {
  out.gauge("troupe_generation", "Generation of the job: counts the changes of its processes.",
            static_cast<double>(view.generation));
  out.gauge("troupe_processes", "Processes of the job.", view.world_size);
  out.begin("troupe_recoveries_total", "counter", "Recoveries since the inspector began.");
  out.add(static_cast<double>(view.num_recoveries));
  if (auto newest = metrics.newest()) {
    out.gauge("troupe_loss", "Mean loss of the newest step.", newest->loss);
    out.gauge("troupe_step_duration_seconds", "Time of the newest run of the plan.", newest->step_s);
    out.gauge("troupe_step_samples", "Samples of the newest run of the plan.",
              static_cast<double>(newest->num_samples));
  }
  if (!view.scheduler) return;
  const auto& report = *view.scheduler;
  auto steps = [&](std::uint64_t runs) { return static_cast<double>(runs * steps_of_run(report)); };
  out.gauge("troupe_step", "Optimizer steps done. Falls when a recovery goes back.", steps(report.step));
  out.gauge("troupe_target_step", "Optimizer steps done when the running call ends.", steps(report.end_step));
  out.gauge("troupe_snapshot_memory_step", "Newest step that is safe in memory.",
            steps(report.committed_step));
  if (report.step_on_disk)
    out.gauge("troupe_snapshot_disk_step", "Newest step that is on disk.", steps(*report.step_on_disk));
  out.gauge("troupe_snapshots_pending", "Snapshots that are being written.",
            static_cast<double>(report.num_pending));
  out.gauge("troupe_paused", "1 while the job is paused.", report.pause.is_paused);
}

void write_actors(metric_writer& out, const job_view& view) {
  std::map<std::string, double> activities, restarts;
  for (const auto& [rank, node] : view.nodes) {
    for (const auto& one : node.report.devices) ++activities[activity_name(one.position.activity)];
    for (const auto& one : node.report.children) restarts[child_name(one.role)] += one.starts - 1.0;
  }
  out.begin("troupe_devices", "gauge", "Devices by what they do.");
  for (const auto& [activity, count] : activities) out.add(count, "activity=\"" + activity + "\"");
  out.begin(
      "troupe_actor_starts_again", "gauge",
      "How often actors of the present processes were started again, the scheduler with each generation.");
  for (const auto& [role, count] : restarts) out.add(count, "role=\"" + role + "\"");
}

void write_findings(metric_writer& out, const job_view& view) {
  std::array<int, num_finding_kinds> counts{};
  for (const auto& one : view.findings) ++counts.at(static_cast<std::size_t>(one.kind));
  out.begin("troupe_findings", "gauge", "What is wrong with the job, by kind.");
  for (std::size_t kind = 0; kind < counts.size(); ++kind)
    out.add(counts[kind], std::string("kind=\"") + to_string(static_cast<finding_kind>(kind)) + "\"");
}

void write_processes(metric_writer& out, const job_view& view, std::int64_t now_ms) {
  out.begin("troupe_report_age_seconds", "gauge", "Age of the newest report of each process.");
  for (const auto& [rank, node] : view.nodes)
    out.add(static_cast<double>(now_ms - node.at_ms) / 1000, rank_label(rank));
  out.begin("troupe_process_incarnation", "gauge", "How often the process of a rank was replaced.");
  for (const auto& [rank, node] : view.nodes) out.add(node.report.incarnation, rank_label(rank));
  using report = node_report;
  per_rank(out, view, "troupe_tensor_sent_bytes_total", "Bytes of tensors sent to other processes.",
           &report::tensor_bytes_sent);
  per_rank(out, view, "troupe_tensor_received_bytes_total", "Bytes of tensors received from other processes.",
           &report::tensor_bytes_received);
  per_rank(out, view, "troupe_tensors_sent_total", "Tensors sent to other processes.", &report::tensors_sent);
  per_rank(out, view, "troupe_tensors_received_total", "Tensors received from other processes.",
           &report::tensors_received);
  per_rank(out, view, "troupe_control_frames_sent_total", "Control messages sent.",
           &report::control_frames_sent);
  per_rank(out, view, "troupe_control_frames_received_total", "Control messages received.",
           &report::control_frames_received);
  per_rank(out, view, "troupe_stale_frames_total", "Frames of older generations, dropped.",
           &report::stale_frames);
  per_rank(out, view, "troupe_bad_frames_total", "Frames that failed a check, dropped.", &report::bad_frames);
}

}  // namespace

std::string prometheus_text(const job_view& view, const metrics_history& metrics, std::int64_t now_ms) {
  metric_writer out;
  write_job(out, view, metrics);
  write_actors(out, view);
  write_findings(out, view);
  write_processes(out, view, now_ms);
  return out.take();
}

}  // namespace troupe
