#include "troupe/trace/perfetto.hpp"

#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/posix/files/safe_file.hpp"

namespace troupe::trace {
namespace {

std::string reason_of(int error_number) { return std::generic_category().message(error_number); }

[[noreturn]] void fail(const std::string& action, int error_number) {
  throw std::runtime_error("cannot " + action + ": " + reason_of(error_number));
}

constexpr std::size_t write_buffer_bytes = std::size_t{1} << 16;

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
    auto made = posix::create_anew(partial_, 0666);
    if (!made.fd) fail("open " + partial_.string(), made.error_number);
    out_ = std::move(made.fd);
    text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  }
  ~trace_writer() {
    std::error_code ignored;
    if (!finished_) std::filesystem::remove(partial_, ignored);
  }
  trace_writer(const trace_writer&) = delete;
  trace_writer& operator=(const trace_writer&) = delete;

  void add(const nlohmann::json& event) {
    text_ += is_first_ ? "\n" : ",\n";
    text_ += event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    is_first_ = false;
    if (text_.size() >= write_buffer_bytes) write();
  }

  void finish() {
    text_ += "\n]}\n";
    write();
    out_.reset();
    std::error_code problem;
    std::filesystem::rename(partial_, file_, problem);
    if (problem) fail("rename " + partial_.string() + " to " + file_.string(), problem.value());
    finished_ = true;
  }

 private:
  void write() {
    for (std::string_view left = text_; !left.empty();) {
      auto written = ::write(out_.get(), left.data(), left.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail("write " + partial_.string(), written < 0 ? errno : ENOSPC);
      left.remove_prefix(static_cast<std::size_t>(written));
    }
    text_.clear();
  }

  std::filesystem::path file_;
  std::filesystem::path partial_;
  posix::unique_fd out_;
  std::string text_;  ///< text that is not written to the file yet
  bool is_first_ = true;
  bool finished_ = false;
};

/// Where an event belongs. Perfetto takes process 0 and thread 0 for the kernel's idle task, so both count
/// from 1.
struct track {
  int process;
  std::size_t thread;
};

nlohmann::json metadata(const char* what, track target, nlohmann::json arguments) {
  return {{"ph", "M"},
          {"name", what},
          {"pid", target.process},
          {"tid", target.thread},
          {"args", std::move(arguments)}};
}

double microseconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

bool is_tensor(const trace_event& event) {
  return event.kind == trace_kind::send || event.kind == trace_kind::receive;
}

bool is_begun(const trace_event& event) {
  return event.kind == trace_kind::action_begun || event.kind == trace_kind::collective_begun ||
         event.kind == trace_kind::wait_begun;
}

nlohmann::json arguments_of(const trace_event& event, const std::string& name) {
  nlohmann::json arguments = {{"generation", event.generation}, {"step", event.step}};
  if (event.kind == trace_kind::collective || event.kind == trace_kind::collective_begun)
    arguments = {{"sequence", event.step}};
  if (event.stage >= 0) arguments["stage"] = event.stage;
  if (event.microbatch >= 0) arguments["microbatch"] = event.microbatch;
  if (!name.empty()) arguments["name"] = name;
  if (event.peer >= 0) arguments["peer"] = event.peer;
  if (event.bytes > 0) arguments["bytes"] = event.bytes;
  if (event.kind == trace_kind::wait) arguments["for"] = to_string(static_cast<wait_reason>(event.detail));
  return arguments;
}

nlohmann::json span_event(const trace_event& event, const std::string& name, track target) {
  nlohmann::json written = {{"name", to_string(event.kind)},
                            {"pid", target.process},
                            {"tid", target.thread},
                            {"ts", microseconds(event.begin_ns)},
                            {"args", arguments_of(event, name)}};
  if (is_begun(event)) {
    written["ph"] = "B";
  } else if (event.begin_ns == event.end_ns && !is_tensor(event)) {
    written["ph"] = "i";
    written["s"] = "t";
  } else {
    written["ph"] = "X";
    written["dur"] = microseconds(event.end_ns - event.begin_ns);
  }
  return written;
}

/// Equal for the sending and the arrival of one tensor.
std::string flow_of(const trace_event& event, int from, int to) {
  std::string id;
  for (auto part : {event.generation, event.step, std::uint64_t{event.call}, std::uint64_t{event.detail},
                    static_cast<std::uint64_t>(event.stage), static_cast<std::uint64_t>(event.microbatch),
                    std::uint64_t{event.port}})
    id += std::to_string(part) + ".";
  return id + std::to_string(from) + "." + std::to_string(to);
}

/// An arrow begins in the span of the sending and ends in that of the arrival.
nlohmann::json flow_event(const trace_event& event, int rank, track target) {
  bool sends = event.kind == trace_kind::send;
  nlohmann::json written = {
      {"ph", sends ? "s" : "f"},
      {"name", "tensor"},
      {"cat", "tensor"},
      {"id", sends ? flow_of(event, rank, event.peer) : flow_of(event, event.peer, rank)},
      {"pid", target.process},
      {"tid", target.thread},
      {"ts", microseconds(event.begin_ns)}};
  if (!sends) written["bp"] = "e";
  return written;
}

void add_thread(trace_writer& writer, const process_events& process, const thread_events& thread,
                track target) {
  writer.add(metadata("thread_name", target, {{"name", thread.name}}));
  const auto& events = thread.events;
  for (std::size_t i = 0; i < events.size(); ++i) {
    // The event that follows when it has ended tells more.
    if (is_begun(events[i]) && i + 1 < events.size()) continue;
    writer.add(span_event(events[i], process.name_of(events[i]), target));
    if (is_tensor(events[i])) writer.add(flow_event(events[i], process.rank, target));
  }
}

nlohmann::json read_trace(const std::filesystem::path& file) {
  errno = 0;
  std::ifstream stream(file);
  if (!stream) throw bad_input("cannot open " + file.string() + ": " + reason_of(errno));
  auto read = nlohmann::json::parse(stream, nullptr, false);
  if (!read.is_object() || !read.contains("traceEvents") || !read["traceEvents"].is_array())
    throw bad_input(file.string() + " is no trace: expected a JSON object with a list named traceEvents");
  return read;
}

}  // namespace

void write_perfetto(const std::vector<process_events>& processes, const std::filesystem::path& file) {
  trace_writer writer(file);
  for (const auto& process : processes) {
    track target{process.rank + 1, 1};
    writer.add(metadata("process_name", target, {{"name", "rank " + std::to_string(process.rank)}}));
    writer.add(metadata("process_sort_index", target, {{"sort_index", process.rank}}));
    for (const auto& thread : process.threads) {
      add_thread(writer, process, thread, target);
      ++target.thread;
    }
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

}  // namespace troupe::trace
