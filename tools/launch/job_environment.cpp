#include "job_environment.hpp"

#include <unistd.h>

#include <map>
#include <string_view>
#include <utility>

namespace troupe {
namespace {

bool is_set(std::string_view name) {
  for (char** entry = environ; *entry; ++entry) {
    std::string_view variable(*entry);
    if (variable.substr(0, variable.find('=')) == name) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> job_environment(const job_identity& job, const process_identity& one) {
  std::map<std::string, std::string, std::less<>> own = {
      {"RANK", std::to_string(one.rank)},
      {"WORLD_SIZE", std::to_string(job.world_size)},
      {"LOCAL_RANK", std::to_string(one.rank)},
      {"LOCAL_WORLD_SIZE", std::to_string(job.world_size)},
      {"MASTER_ADDR", job.master_addr},
      {"MASTER_PORT", std::to_string(job.master_port)},
      {"TROUPE_JOB_ID", job.job_id},
      {"TROUPE_JOB_SECRET", job.secret_hex},
      {"TROUPE_INCARNATION", std::to_string(one.incarnation)},
      {"TROUPE_EVENTS_FD", one.events < 0 ? "" : std::to_string(one.events)},
      {"TROUPE_STOP_SIGNALS", job.stop_signals},
      {"TROUPE_MAX_RESTARTS", std::to_string(job.max_restarts)},
      {"TROUPE_AGENT", "1"},
  };
  // The value that libgomp uses itself if its process has more threads than cores. It cannot know of the
  // job's other processes.
  if (!is_set("OMP_WAIT_POLICY") && !is_set("GOMP_SPINCOUNT")) own.emplace("GOMP_SPINCOUNT", "1000");
  // SIGHUP stops a job; UCX would print its state instead. After a crash the exit status must show the
  // signal, so UCX must not handle it.
  for (auto [name, value] : {std::pair{"UCX_DEBUG_SIGNO", "0"}, {"UCX_HANDLE_ERRORS", "none"}})
    if (!is_set(name)) own.emplace(name, value);
  std::vector<std::string> made;
  for (char** entry = environ; *entry; ++entry) {
    std::string_view variable(*entry);
    if (!own.contains(variable.substr(0, variable.find('=')))) made.emplace_back(variable);
  }
  for (const auto& [name, value] : own) made.push_back(name + "=" + value);
  return made;
}

}  // namespace troupe
