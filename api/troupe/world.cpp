#include "troupe/world.hpp"

#include <spdlog/sinks/stdout_sinks.h>

#include <cstdio>

#include "troupe/config/environment/events_environment.hpp"
#include "troupe/config/environment/other_launchers.hpp"
#include "troupe/config/job_fields.hpp"
#include "troupe/detail/start/process_devices.hpp"
#include "troupe/detail/world_state.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/files/file_size_limit.hpp"
#include "troupe/posix/thread_limit.hpp"
#include "troupe/trace/recording.hpp"

namespace troupe {
namespace {

std::shared_ptr<spdlog::logger> make_logger(const job_options& options, int rank) {
  auto log = std::make_shared<spdlog::logger>("troupe", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  log->set_level(spdlog::level::from_str(options.log_level));
  log->set_pattern("%H:%M:%S.%e %l rank=" + std::to_string(rank) + " %v");
  log->flush_on(spdlog::level::info);
  return log;
}

void warn_of_launcher_options(const job_options& options, spdlog::logger& log) {
  for (const auto* name : {"join_timeout", "suspect_after"})
    if (options.given.contains(name))
      log.warn("{}: the launcher's counts: give it to `troupe launch`, before the program",
               config::find_job_field(name)->option_name());
}

void record_events(const launch_environment& self, const std::shared_ptr<spdlog::logger>& log) {
  auto wanted = config::read_events_environment(process_environment());
  trace::start_recording({.events_per_thread = wanted.events_per_thread,
                          .file = wanted.file,
                          .rank = self.rank,
                          .incarnation = self.incarnation,
                          .on_problem = [log](const std::string& problem) { log->warn("{}", problem); }});
}

/// What is set once for the whole process.
void prepare_process() {
  files::ignore_file_size_signal();
  if (!process_environment()("MALLOC_ARENA_MAX")) posix::spare_address_space();
}

/// Where the inspector's commands are kept. The folder of snapshots may not exist before the job begins, and
/// has the permissions that snapshots have.
void keep_commands(const job_options& options, actors::process::process_options& made) {
  made.inspect_audit_log = options.inspect_audit_log;
  if (!made.inspect_audit_log.empty() || options.snapshot_dir.empty()) return;
  made.inspect_audit_log = options.snapshot_dir / "inspector_audit.jsonl";
  const auto& access = options.snapshot_access;
  made.inspect_audit_folder_mode = access == "owner" ? 0700 : access == "group" ? 0750 : 0777;
}

/// The one line that says where the job is watched.
void show_inspector(const actors::process::process& self, const job_options& options) {
  const auto& url = self.inspector_url();
  if (url.empty()) return;
  if (options.json)
    std::fprintf(stdout, "{\"event\":\"inspector\",\"url\":\"%s\"}\n", url.c_str());
  else
    std::fprintf(stderr, "inspector: %s\n", url.c_str());
  std::fflush(options.json ? stdout : stderr);
}

}  // namespace

World World::init(const job_options& options, const std::vector<group_backend>& linked) {
  check_options(options);
  prepare_process();
  auto shared = std::make_shared<state>();
  shared->options = options;
  shared->shown_profile = config::read_profile_environment(process_environment());
  actors::process::process_options made;
  made.launch = read_launch_environment(process_environment());
  auto self = made.launch.value_or(launch_environment());
  bool names_network = !made.launch && options.given.contains("network_interface");
  shared->incarnation = self.incarnation;
  shared->places = detail::places_of(options, self.local_rank, self.incarnation > 0);
  auto gpus = shared->places.gpus();
  shared->backends = std::make_unique<collective::backend_registry>(
      options.backend, linked,
      backend_options{self.rank, self.world_size, self.local_rank, options.network_interface,
                      collective::network_sizes_from(options.network_sizes),
                      gpus.empty() ? std::nullopt : std::optional(gpus.front().index)});
  made.numeric_class = detail::numeric_class_of(shared->places);
  made.network_interface = options.network_interface;
  made.verify_frames = options.verify_frames;
  made.join_timeout = options.join_timeout;
  made.suspect_after = options.suspect_after;
  made.fault = options.fault;
  made.writes_snapshots = !options.snapshot_dir.empty();
  made.inspect = options.inspect;
  made.inspect_token_file = options.inspect_token_file;
  made.inspect_control = options.inspect_control;
  keep_commands(options, made);
  made.progress_timeout = options.progress_timeout;
  made.log = shared->log = make_logger(options, self.rank);
  record_events(self, shared->log);
  if (self.launched_by_troupe && self.rank == 0) warn_of_launcher_options(options, *shared->log);
  if (!made.launch)
    if (auto warning = config::warning_of_other_launcher(process_environment()); !warning.empty())
      shared->log->warn(warning);
  if (names_network)
    shared->log->warn(
        "--network-interface: a job of one process, started without a launcher, uses no network");
  made.collectives = [open = shared->open] { return open->positions(); };
  shared->self = actors::process::process::start(made);
  show_inspector(*shared->self, options);
  return started(std::move(shared));
}

World World::local(int devices, job_options options, const std::vector<group_backend>& linked) {
  options.devices = devices;
  check_options(options);
  prepare_process();
  auto shared = std::make_shared<state>();
  shared->options = options;
  shared->shown_profile = config::read_profile_environment(process_environment());
  shared->backends = std::make_unique<collective::backend_registry>(
      options.backend, linked,
      backend_options{.sizes = collective::network_sizes_from(options.network_sizes)});
  actors::process::process_options made;
  shared->places = detail::places_of(options, 0);
  made.numeric_class = detail::numeric_class_of(shared->places);
  made.fault = options.fault;
  made.writes_snapshots = !options.snapshot_dir.empty();
  made.inspect = options.inspect;
  made.inspect_token_file = options.inspect_token_file;
  made.inspect_control = options.inspect_control;
  keep_commands(options, made);
  made.progress_timeout = options.progress_timeout;
  made.log = shared->log = make_logger(options, 0);
  record_events({}, shared->log);
  made.collectives = [open = shared->open] { return open->positions(); };
  shared->self = actors::process::process::start(made);
  show_inspector(*shared->self, options);
  return started(std::move(shared));
}

world_rank World::rank() const { return shared_->self->rank(); }
int World::world_size() const { return shared_->self->world_size(); }
bool World::is_replaying() const { return shared_->self->is_replaying(); }
int World::local_rank() const { return shared_->self->local_rank(); }
int World::num_devices() const { return world_size() * shared_->options.devices; }
device World::device(int index) const {
  auto count = shared_->options.devices;
  if (index < 0 || index >= count)
    throw_invalid("World::device", "one of the process's " + std::to_string(count) + " devices",
                  std::to_string(index));
  return shared_->places.of({rank() * count + index});
}
const job_options& World::options() const { return shared_->options; }

void World::barrier() {
  detail::running_call::scope call(shared_->running, "World::barrier");
  actors::job::call_request request;
  request.kind = actors::job::call_kind::barrier;
  shared_->self->run(request, {});
}

}  // namespace troupe
