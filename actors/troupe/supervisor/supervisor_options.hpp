#pragma once
#include <spdlog/logger.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "troupe/cluster/membership.hpp"
#include "troupe/collective/diagnostics/collective_position.hpp"
#include "troupe/fault/fault_plan.hpp"
#include "troupe/job/client_mailbox.hpp"
#include "troupe/job/pause.hpp"
#include "troupe/link/inbound_gate.hpp"
#include "troupe/recovery/inventory.hpp"
#include "troupe/supervisor/state/stage_directory.hpp"
#include "troupe/supervisor/state/supervision_tree.hpp"
#include "troupe/trace/trace.hpp"

namespace troupe::actors::inspector {
class inspected_job;
}  // namespace troupe::actors::inspector

namespace troupe::actors::supervisor {

void kill_this_process();

/// Where children that compute or block run. own: detached, a thread each. shared: as scheduled actors, for
/// tests that run whole jobs in virtual time on one thread.
enum class child_threads : std::uint8_t { own, shared };

/// Pointers are to objects of the process that outlive the supervisor.
struct supervisor_options {
  int rank = 0;
  int world_size = 1;
  std::uint32_t incarnation = 0;  ///< see member::incarnation
  std::string host;
  std::string numeric_class;
  transport::transport* out = nullptr;
  cluster::membership* members = nullptr;
  link::inbound_gate* gate = nullptr;
  stage_directory* directory = nullptr;
  const fault::fault_plan* faults = nullptr;
  trace::trace_recorder* trace = nullptr;
  std::shared_ptr<std::atomic<std::uint64_t>> fenced;
  std::shared_ptr<job::client_mailbox> client;
  std::shared_ptr<spdlog::logger> log;
  subtree_options restarts;
  std::chrono::seconds restore_timeout = std::chrono::seconds(120);
  /// Gets what this process knows of pauses of the job.
  std::shared_ptr<job::pause_record> pause = std::make_shared<job::pause_record>();
  /// Gets the hosting of each generation that this process is to restore, for the scheduler of the next one.
  std::shared_ptr<recovery::past_hosting> hosted = std::make_shared<recovery::past_hosting>();
  child_threads threads = child_threads::own;
  /// A device or loader without progress for this long counts as lost; 0: not watched. A device that has not
  /// stopped for so long after a fence, at least half a minute, too.
  std::chrono::milliseconds progress_timeout{0};
  /// What the inspector of this process publishes; null: it has none.
  std::shared_ptr<inspector::inspected_job> inspected;
  /// Set when a thread of this process is in code that does not return, so that it cannot be joined.
  std::shared_ptr<std::atomic<bool>> stuck;
  /// Whether a launcher replaces this process when it ends.
  bool is_replaced = false;
  /// Whether results of all calls are kept: a process may be started again, or there are snapshots.
  bool keeps_results = true;
  /// Ends this process by SIGKILL.
  std::function<void()> kill_process = kill_this_process;
  /// Where this process is in its process groups. Thread-safe.
  std::function<std::vector<collective::collective_position>()> collectives;
};

}  // namespace troupe::actors::supervisor
