#include "troupe/cluster/agent.hpp"

#include "troupe/cluster/agent_server.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::cluster {

void check_suspect_after(std::chrono::milliseconds suspect_after) {
  if (suspect_after >= least_suspect_after) return;
  throw bad_input("--suspect-after: expected at least " + std::to_string(least_suspect_after.count()) +
                  "ms, got " + std::to_string(suspect_after.count()) +
                  "ms. Processes send a heartbeat every " + std::to_string(member_heartbeat.count()) +
                  "ms, and one that comes that much late must not end its process");
}

std::string text_of_gap(std::chrono::steady_clock::duration gap) {
  constexpr auto least = std::chrono::seconds(10);
  if (gap < least) return {};
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(gap).count();
  return "this process did not run for " + std::to_string(seconds) +
         " s: it was stopped (Ctrl-Z, SIGSTOP, a debugger), or its host was suspended or overloaded. The job "
         "goes "
         "on";
}

std::unique_ptr<agent> make_agent(const agent_options& options, agent_callbacks callbacks) {
  check_suspect_after(options.suspect_after);
  return std::make_unique<agent_server>(options, std::move(callbacks));
}

}  // namespace troupe::cluster
