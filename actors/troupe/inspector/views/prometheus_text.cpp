#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/actor/handler_times.hpp"
#include "troupe/inspector/views/names.hpp"
#include "troupe/inspector/views/views.hpp"

namespace troupe::actors::inspector {
namespace {

std::string number_text(double value) {
  std::array<char, 32> digits{};
  auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

/// Writes one metric after the other: its help, its type, its samples.
class metric_writer {
 public:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_ +=
        "# HELP " + name_ + " " + std::string(help) + "\n# TYPE " + name_ + " " + std::string(type) + "\n";
  }
  void add(double value, const std::string& labels = {}) {
    text_ += name_ + (labels.empty() ? "" : "{" + labels + "}") + " " + number_text(value) + "\n";
  }
  /// A sample of a name that begins with that of the metric: NAME_bucket, NAME_sum, NAME_count.
  void add_part(std::string_view suffix, double value, const std::string& labels) {
    auto name = name_;
    name_ += suffix;
    add(value, labels);
    name_ = std::move(name);
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
              std::uint64_t messages::process_report::*counted) {
  out.begin(name, "counter", help);
  for (const auto& [rank, process] : view.processes)
    out.add(static_cast<double>(process.report.*counted), rank_label(rank));
}

void write_job(metric_writer& out, const job_view& view, const metrics_history& metrics) {
  out.gauge("troupe_generation", "Generation of the job: counts the changes of its processes.",
            static_cast<double>(view.generation));
  out.gauge("troupe_processes", "Processes of the job.", view.world_size);
  out.begin("troupe_recoveries_total", "counter", "Recoveries since the job began.");
  out.add(static_cast<double>(view.history.num_recoveries));
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
  for (const auto& [rank, process] : view.processes) {
    for (const auto& one : process.report.devices) ++activities[activity_name(one.position.activity)];
    for (const auto& one : process.report.children) restarts[child_name(one.id.role)] += one.starts - 1.0;
  }
  out.begin("troupe_devices", "gauge", "Devices by what they do.");
  for (const auto& [activity, count] : activities) out.add(count, "activity=\"" + activity + "\"");
  out.begin(
      "troupe_actor_starts_again", "gauge",
      "How often actors of the present processes were started again, the scheduler with each generation.");
  for (const auto& [role, count] : restarts) out.add(count, "role=\"" + role + "\"");
}

/// All actors of a role in a process: their sums, and the age of the oldest message of any.
using counts_by_role = std::map<std::pair<std::string, int>, actor::actor_counts>;

void join(actor::actor_counts& to, const actor::actor_counts& more) {
  add_totals(to, more);
  to.mailbox_depth += more.mailbox_depth;
  to.oldest_s = std::max(to.oldest_s, more.oldest_s);
}

counts_by_role counts_of(const job_view& view) {
  counts_by_role counts;
  for (const auto& [rank, process] : view.processes) {
    join(counts[{"supervisor", rank}], process.report.supervisor);
    for (const auto& one : process.report.children) join(counts[{child_name(one.id.role), rank}], one.counts);
  }
  return counts;
}

std::string role_label(const counts_by_role::key_type& role) {
  return "role=\"" + role.first + "\"," + rank_label(role.second);
}

/// Every fourth bound of the counted times, each 16 times the one before: a histogram of all would be most of
/// the text.
void write_handler_times(metric_writer& out, const counts_by_role& counts) {
  constexpr std::size_t bounds_apart = 4;
  out.begin("troupe_actor_handler_duration_seconds", "histogram",
            "Times of actors' handlers by role, also those in which they wait.");
  for (const auto& [of, one] : counts) {
    auto labels = role_label(of);
    std::uint64_t below = 0;
    for (std::size_t bucket = 0; bucket < actor::num_handler_buckets; ++bucket) {
      if (bucket < one.handler_times.size()) below += one.handler_times[bucket];
      bool is_last = bucket + 1 == actor::num_handler_buckets;
      if (bucket % bounds_apart != 0 && !is_last) continue;
      auto bound = is_last ? std::string("+Inf") : number_text(actor::handler_bucket_bound_s(bucket));
      out.add_part("_bucket", static_cast<double>(below), labels + ",le=\"" + bound + "\"");
    }
    out.add_part("_sum", one.handler_s, labels);
    out.add_part("_count", static_cast<double>(below), labels);
  }
}

void write_messages(metric_writer& out, const job_view& view) {
  auto counts = counts_of(view);
  auto write = [&](std::string_view name, std::string_view type, std::string_view help, auto field) {
    out.begin(name, type, help);
    for (const auto& [of, one] : counts) out.add(static_cast<double>(one.*field), role_label(of));
  };
  using count = actor::actor_counts;
  write("troupe_actor_mailbox_messages", "gauge", "Messages that wait in the mailboxes of a role's actors.",
        &count::mailbox_depth);
  write("troupe_actor_mailbox_oldest_seconds", "gauge",
        "Age of the oldest message that waits for a role's actors.", &count::oldest_s);
  write("troupe_actor_messages_received_total", "counter",
        "Messages taken from the mailboxes of a role's actors.", &count::messages_in);
  write("troupe_actor_messages_sent_total", "counter", "Messages sent by a role's actors.",
        &count::messages_out);
  write("troupe_actor_received_bytes_total", "counter",
        "Bytes of control messages from other processes to a role's actors.", &count::frame_bytes_in);
  write("troupe_actor_sent_bytes_total", "counter",
        "Bytes of control messages of a role's actors to other processes.", &count::frame_bytes_out);
  write_handler_times(out, counts);
}

/// Of all links of a process: one between two processes has no label of its own, as those would be many.
void write_flights(metric_writer& out, const job_view& view) {
  auto write = [&](std::string_view name, std::string_view help, auto field) {
    out.begin(name, "gauge", help);
    for (const auto& [rank, process] : view.processes) {
      std::uint64_t sum = 0;
      for (const auto& peer : process.report.peers) sum += peer.counted.*field;
      out.add(static_cast<double>(sum), rank_label(rank));
    }
  };
  using peer = transport::peer_statistics;
  write("troupe_tensors_in_flight", "Tensors whose sending is not completed.", &peer::tensors_in_flight);
  write("troupe_tensor_in_flight_bytes", "Bytes of tensors whose sending is not completed.",
        &peer::tensor_bytes_in_flight);
  write("troupe_control_queued_bytes", "Bytes of control messages that no socket has taken yet.",
        &peer::frame_bytes_queued);
}

void write_findings(metric_writer& out, const job_view& view) {
  std::array<int, num_finding_kinds> counts{};
  for (const auto& one : view.findings) ++counts.at(static_cast<std::size_t>(one.kind));
  out.begin("troupe_findings", "gauge", "What is wrong with the job, by kind.");
  for (std::size_t kind = 0; kind < counts.size(); ++kind)
    out.add(counts[kind], std::string("kind=\"") + to_string(static_cast<finding_kind>(kind)) + "\"");
}

void write_device_memory(metric_writer& out, const job_view& view) {
  using report = messages::device_memory_report;
  auto write = [&](const char* name, const char* help, std::uint64_t report::*bytes) {
    out.begin(name, "gauge", help);
    for (const auto& [rank, process] : view.processes)
      for (const auto& each : process.report.device_memory)
        out.add(static_cast<double>(each.*bytes), rank_label(rank) + ",device=\"" +
                                                      std::to_string(each.device) + "\",place=\"" +
                                                      each.place + "\"");
  };
  write("troupe_device_memory_bytes",
        "Held by a device in the memory of its place, without copies of the state.", &report::held);
  write("troupe_device_memory_peak_bytes", "The most that it held.", &report::peak);
}

void write_processes(metric_writer& out, const job_view& view, std::int64_t now_ms) {
  out.begin("troupe_report_age_seconds", "gauge", "Age of the newest report of each process.");
  for (const auto& [rank, process] : view.processes)
    out.add(static_cast<double>(now_ms - process.at_ms) / 1000, rank_label(rank));
  out.begin("troupe_process_incarnation", "gauge", "How often the process of a rank was replaced.");
  for (const auto& [rank, process] : view.processes) out.add(process.report.incarnation, rank_label(rank));
  using report = messages::process_report;
  per_rank(out, view, "troupe_tensor_sent_bytes_total", "Bytes of tensors sent to other processes.",
           &report::tensor_bytes_sent);
  per_rank(out, view, "troupe_tensor_received_bytes_total", "Bytes of tensors received from other processes.",
           &report::tensor_bytes_received);
  per_rank(out, view, "troupe_tensor_shared_bytes_total",
           "Bytes of sent tensors that processes of the same host read in place.",
           &report::tensor_bytes_shared);
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
  out.begin("troupe_core_wait_seconds_total", "counter",
            "Time in which threads could run and waited for a core, added up over threads.");
  for (const auto& [rank, process] : view.processes)
    out.add(static_cast<double>(process.report.core_wait_ns) / 1e9, rank_label(rank));
}

}  // namespace

std::string prometheus_text(const job_view& view, const metrics_history& metrics, std::int64_t now_ms) {
  metric_writer out;
  write_job(out, view, metrics);
  write_actors(out, view);
  write_messages(out, view);
  write_findings(out, view);
  write_processes(out, view, now_ms);
  write_device_memory(out, view);
  write_flights(out, view);
  return out.take();
}

}  // namespace troupe::actors::inspector
