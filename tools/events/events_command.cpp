#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "commands.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/trace/perfetto.hpp"
#include "troupe/trace/process_events.hpp"

namespace troupe {
namespace {

struct events_arguments {
  std::vector<std::filesystem::path> files;
  std::size_t last = 20;
  std::filesystem::path trace;
};

std::int64_t newest_end(const trace::process_events& process) {
  std::int64_t newest = 0;
  for (const auto& thread : process.threads)
    for (const auto& event : thread.events) newest = std::max(newest, event.end_ns);
  return newest;
}

/// Who recorded the events: an actor, by its name, or the part of the process whose events they are. The
/// thread is in parentheses where its name is another: those of a pool have names that say nothing.
std::string title_of(const trace::thread_events& thread) {
  using enum trace::trace_kind;
  auto all = [&thread](auto... kinds) {
    return !thread.events.empty() &&
           std::ranges::all_of(thread.events, [kinds...](const trace::trace_event& event) {
             return ((event.kind == kinds) || ...);
           });
  };
  std::string who;
  if (all(actor_born, actor_failed, actor_restarted, view, fence, restore, quiesce, commit))
    who = "the supervisor";
  else if (all(send))
    who = "sender of tensors";
  else if (all(receive))
    who = "receiver of tensors";
  else if (all(send, receive))
    who = "sender and receiver of tensors";
  else if (all(collective, collective_begun, wait, wait_begun))
    who = "calls of process groups";
  return who.empty() ? thread.name : who + " (thread " + thread.name + ")";
}

/// Times are relative to the newest event of the process.
void print(const trace::process_events& process, std::size_t last) {
  std::printf("rank %d, incarnation %u, pid %u\n", process.rank, process.incarnation, process.pid);
  if (process.num_unrecorded > 0)
    std::printf("  not recorded: %llu threads, which found all rings in use\n",
                static_cast<unsigned long long>(process.num_unrecorded));
  auto newest = newest_end(process);
  auto seconds = [](std::int64_t nanoseconds) { return 1e-9 * static_cast<double>(nanoseconds); };
  for (const auto& thread : process.threads) {
    std::printf("  %s%s: %llu events\n", title_of(thread).c_str(), thread.has_ended ? " (ended)" : "",
                static_cast<unsigned long long>(thread.num_recorded));
    for (const auto& event : std::span(thread.events).last(std::min(last, thread.events.size()))) {
      std::printf("    %12.6f s  %s", seconds(event.end_ns - newest), describe(process, event).c_str());
      if (event.end_ns > event.begin_ns) std::printf(" (%.6f s)", seconds(event.end_ns - event.begin_ns));
      std::printf("\n");
    }
  }
}

trace::process_events events_in(const std::filesystem::path& file) {
  try {
    return trace::read_events(file);
  } catch (const system_failure& problem) {
    throw bad_input("cannot read " + file.string() + ": " + std::strerror(problem.error_number()) +
                    ". Expected a file events-RANK.INCARNATION.bin of `troupe launch --log-dir`");
  }
}

void write_trace(const std::vector<trace::process_events>& processes, const std::filesystem::path& file) {
  try {
    write_perfetto(processes, file);
  } catch (const bad_input&) {
    throw;
  } catch (const std::runtime_error& problem) {
    throw bad_input(std::string(problem.what()) + ". Name another file with --trace");
  }
}

int show(const events_arguments& arguments) {
  std::vector<trace::process_events> processes;
  for (const auto& file : arguments.files) processes.push_back(events_in(file));
  if (!arguments.trace.empty()) write_trace(processes, arguments.trace);
  for (const auto& process : processes) print(process, arguments.last);
  return 0;
}

}  // namespace

void add_events_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<events_arguments>();
  auto* command =
      app.add_subcommand("events", "Print the last events of lost processes (troupe launch --log-dir)");
  command->add_option("FILES", arguments->files, "Files events-RANK.INCARNATION.bin")->required();
  command->add_option("--last", arguments->last, "Events to print of each actor or thread")
      ->capture_default_str();
  command->add_option("--trace", arguments->trace, "Also write all events as a Perfetto trace to this file");
  command->callback([arguments, &exit_code] { exit_code = show(*arguments); });
}

}  // namespace troupe
