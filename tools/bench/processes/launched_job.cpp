#include "bench/processes/launched_job.hpp"

#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "bench/measure/report.hpp"
#include "bench/processes/subprocess.hpp"
#include "child_process.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/job_error/job_errors.hpp"
#include "troupe/messaging/tcp_socket.hpp"

namespace troupe::bench {
namespace {

std::string content_of(const posix::unique_fd& file) {
  auto size_bytes = check_posix(::lseek(file.get(), 0, SEEK_END), "find the end of a memory file");
  std::string text(static_cast<std::size_t>(size_bytes), '\0');
  check_posix(::pread(file.get(), text.data(), text.size(), 0), "read a memory file");
  return text;
}

launch_options options_of(std::vector<std::string> command, int num_processes, int max_restarts,
                          const posix::unique_fd& output, const posix::unique_fd& errors) {
  launch_options options;
  options.command = std::move(command);
  options.num_processes = num_processes;
  options.max_restarts = max_restarts;
  options.json = true;
  options.output_fd = output.get();
  options.error_fd = errors.get();
  // A measurement that is stopped has nothing to save.
  options.grace = std::chrono::seconds(1);
  options.time_to_end_stopped = std::chrono::milliseconds(1);
  return options;
}

}  // namespace

// The launcher never waits when it writes to a file in memory.
launched_job::launched_job(std::vector<std::string> command, int num_processes, int max_restarts,
                           launch_callbacks callbacks)
    : output_(make_memory_file()),
      errors_(make_memory_file()),
      launcher_(options_of(std::move(command), num_processes, max_restarts, output_, errors_),
                std::move(callbacks)) {}

std::vector<nlohmann::json> launched_job::run() {
  auto code = launcher_.run();
  if (int signal = launcher_.stopped_by())
    throw job_stopped(signal, signal_name(signal) + " stopped the measured job before its end");
  check_exit_code(code, "the measured job", content_of(errors_));
  return json_objects_in(content_of(output_));
}

std::vector<nlohmann::json> run_launched(std::vector<std::string> command, int num_processes) {
  return launched_job(std::move(command), num_processes, 0).run();
}

nlohmann::json run_launched_for_object(std::vector<std::string> command, int num_processes) {
  auto objects = run_launched(std::move(command), num_processes);
  if (objects.empty()) throw std::runtime_error("the measured job printed no result");
  return objects.front();
}

std::vector<nlohmann::json> run_by_mpirun(const std::vector<std::string>& command, int num_processes) {
  std::vector<std::string> whole{
      "mpirun", "--oversubscribe", "--bind-to", "none", "-n", std::to_string(num_processes)};
  if (::geteuid() == 0) whole.emplace_back("--allow-run-as-root");
  if (this_machine().cores < num_processes) whole.insert(whole.end(), {"--mca", "mpi_yield_when_idle", "1"});
  whole.insert(whole.end(), command.begin(), command.end());
  auto agent_port = std::to_string(messaging::local_port(messaging::listen_on("127.0.0.1", 0)));
  auto finished = run_process(whole, {"MASTER_PORT=" + agent_port});
  check_exit_code(finished.exit_code, "mpirun of " + command.front(), finished.errors);
  return json_objects_in(finished.output);
}

}  // namespace troupe::bench
