#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "inspect/commands/job_command.hpp"
#include "inspect/inspector_address.hpp"
#include "inspect/job_snapshot.hpp"
#include "troupe/posix/wake_event.hpp"

namespace troupe {

/// Asks an inspector twice a second on a thread of its own, and again when it does not answer. Sends it
/// commands on that thread too.
class snapshot_poller {
 public:
  static constexpr std::chrono::milliseconds interval{500};

  /// Records each snapshot, unless `record` is empty. Throws system_failure if that file cannot be made.
  snapshot_poller(const inspector_address& address, const std::filesystem::path& record);

  struct state {
    job_snapshot newest;  ///< at_ms 0: there was no answer yet
    std::string problem;  ///< why there is no newer one; empty: there is none
    std::int64_t problem_since_ms = 0;
    bool is_refused = false;     ///< the answers are not those of this job's inspector
    std::exception_ptr failure;  ///< it has ended: the record cannot be written
  };
  state read() const;
  /// The command is sent next.
  void send(job_command command);
  /// What was answered to commands since the last call.
  std::vector<command_answer> take_answers();
  /// Readable when there is news; clear() it.
  posix::wake_event& news() { return news_; }

 private:
  void work(const std::stop_token& stop, const inspector_address& address,
            const std::filesystem::path& record);
  void send_commands(const inspector_address& address);

  mutable std::mutex mutex_;
  std::condition_variable_any wait_;
  state state_;
  std::vector<job_command> commands_;    ///< commands that are not sent yet
  std::vector<command_answer> answers_;  ///< answers that are not taken yet
  posix::wake_event news_;
  std::jthread thread_;  // ends first
};

}  // namespace troupe
