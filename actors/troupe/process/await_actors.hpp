#pragma once
#include <atomic>
#include <exception>

namespace caf {
class actor_system;
}
namespace spdlog {
class logger;
}

namespace troupe::actors::process {

/// Blocks until all actors of `system` have ended, after they were told to.
///
/// If `stuck` is set, a thread of this process is in code that does not return (see
/// supervisor_options::stuck) and cannot be joined. After two more seconds the process then exits with code 1
/// and an error in `log`, which begins with the text of `job_end` if that is not null.
void await_actors(caf::actor_system& system, const std::atomic<bool>& stuck,
                  const std::exception_ptr& job_end, spdlog::logger& log);

}  // namespace troupe::actors::process
