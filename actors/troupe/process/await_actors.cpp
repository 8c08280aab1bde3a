#include "troupe/process/await_actors.hpp"

#include <spdlog/logger.h>

#include <caf/actor_system.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>

namespace troupe::actors::process {
namespace {

constexpr auto stuck_check_interval = std::chrono::milliseconds(500);
/// How long a thread that seemed stuck may still take to return.
constexpr auto stuck_grace = std::chrono::seconds(2);

/// The stuck thread still uses its objects, so the process exits without destroying them.
[[noreturn]] void exit_while_stuck(const std::exception_ptr& job_end, spdlog::logger& log) {
  std::string why;
  try {
    if (job_end) std::rethrow_exception(job_end);
  } catch (const std::exception& end) {
    why = end.what() + std::string(". ");
  }
  log.error("{}This process ends now: a device or loader does not return from the program's code", why);
  log.flush();
  std::fflush(nullptr);
  std::_Exit(1);
}

}  // namespace

void await_actors(caf::actor_system& system, const std::atomic<bool>& stuck,
                  const std::exception_ptr& job_end, spdlog::logger& log) {
  std::promise<void> done;
  std::thread waiting([&system, &done] {
    system.await_all_actors_done();
    done.set_value();
  });
  auto ended = done.get_future();
  while (ended.wait_for(stuck_check_interval) != std::future_status::ready) {
    if (!stuck) continue;
    if (ended.wait_for(stuck_grace) == std::future_status::ready) break;
    exit_while_stuck(job_end, log);
  }
  waiting.join();
}

}  // namespace troupe::actors::process
