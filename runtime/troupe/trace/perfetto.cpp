#include <array>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>

#include "troupe/error/errors.hpp"
#include "troupe/trace/trace.hpp"

namespace troupe {
namespace {

constexpr std::array<std::string_view, 14> kind_names = {
    "F",          "B",      "I",       "W",       "R",     "apply", "copy_state",
    "write_part", "commit", "quiesce", "restore", "fence", "view",  "step"};

/// A list of events, one a line, written beside its final name and renamed when it is complete.
class trace_writer {
 public:
  explicit trace_writer(std::filesystem::path file) : file_(std::move(file)), partial_(file_) {
    partial_ += ".partial";
    std::error_code unknown;
    auto there = std::filesystem::symlink_status(file_, unknown);
    if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there))
      throw bad_input("cannot write the trace " + file_.string() +
                      ": it is no regular file, and only those are written over. Name another one");
    errno = 0;
    stream_.open(partial_);
    check("open");
    stream_ << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  }
  ~trace_writer() {
    std::error_code ignored;
    if (!finished_) std::filesystem::remove(partial_, ignored);
  }
  trace_writer(const trace_writer&) = delete;
  trace_writer& operator=(const trace_writer&) = delete;

  void add(const nlohmann::json& event) {
    stream_ << (is_first_ ? "\n" : ",\n")
            << event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    is_first_ = false;
  }

  void finish() {
    stream_ << "\n]}\n";
    stream_.close();
    check("write");
    std::error_code problem;
    std::filesystem::rename(partial_, file_, problem);
    if (problem)
      throw system_failure("rename " + partial_.string() + " to " + file_.string(), problem.value());
    finished_ = true;
  }

 private:
  void check(const std::string& action) const {
    if (!stream_) throw system_failure(action + " " + partial_.string(), errno);
  }

  std::filesystem::path file_;
  std::filesystem::path partial_;
  std::ofstream stream_;
  bool is_first_ = true;
  bool finished_ = false;
};

/// Where an event belongs. Perfetto takes process 0 and thread 0 for the kernel's idle task, so both count
/// from 1.
struct track {
  int process;
  std::size_t thread;
};

nlohmann::json metadata(const char* what, track of, nlohmann::json arguments) {
  return {
      {"ph", "M"}, {"name", what}, {"pid", of.process}, {"tid", of.thread}, {"args", std::move(arguments)}};
}

double microseconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

nlohmann::json span_event(const trace_event& event, track of) {
  nlohmann::json arguments = {{"generation", event.generation}, {"step", event.step}};
  if (event.stage >= 0) arguments["stage"] = event.stage;
  if (event.microbatch >= 0) arguments["microbatch"] = event.microbatch;
  nlohmann::json written = {{"name", to_string(event.kind)},
                            {"pid", of.process},
                            {"tid", of.thread},
                            {"ts", microseconds(event.begin_ns)},
                            {"args", std::move(arguments)}};
  if (event.begin_ns == event.end_ns) {
    written["ph"] = "i";
    written["s"] = "t";
  } else {
    written["ph"] = "X";
    written["dur"] = microseconds(event.end_ns - event.begin_ns);
  }
  return written;
}

nlohmann::json read_trace(const std::filesystem::path& file) {
  errno = 0;
  std::ifstream stream(file);
  if (!stream) throw system_failure("open " + file.string(), errno);
  auto read = nlohmann::json::parse(stream, nullptr, false);
  if (!read.is_object() || !read.contains("traceEvents") || !read["traceEvents"].is_array())
    throw bad_input(file.string() + " is no trace: expected a JSON object with a list named traceEvents");
  return read;
}

}  // namespace

std::string_view to_string(trace_kind kind) { return kind_names[static_cast<std::size_t>(kind)]; }

trace_recorder::trace_recorder(int rank, std::size_t events_per_thread)
    : rank_(rank), events_per_thread_(events_per_thread) {}

event_ring& trace_recorder::ring(std::string thread_name) {
  auto made = std::make_unique<event_ring>(std::move(thread_name), events_per_thread_);
  std::lock_guard lock(mutex_);
  return *rings_.emplace_back(std::move(made));
}

void trace_recorder::write_perfetto(const std::filesystem::path& file) const {
  std::lock_guard lock(mutex_);
  trace_writer writer(file);
  track of{rank_ + 1, 1};
  writer.add(metadata("process_name", of, {{"name", "rank " + std::to_string(rank_)}}));
  writer.add(metadata("process_sort_index", of, {{"sort_index", rank_}}));
  for (const auto& ring : rings_) {
    writer.add(metadata("thread_name", of, {{"name", ring->thread_name()}}));
    for (const auto& event : ring->snapshot()) writer.add(span_event(event, of));
    ++of.thread;
  }
  writer.finish();
}

void merge_perfetto(const std::vector<std::filesystem::path>& traces, const std::filesystem::path& joined) {
  trace_writer writer(joined);
  for (const auto& trace : traces) {
    auto read = read_trace(trace);
    for (const auto& event : read["traceEvents"]) writer.add(event);
  }
  writer.finish();
}

}  // namespace troupe
