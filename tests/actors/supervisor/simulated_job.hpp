#pragma once
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "actors/virtual_actors.hpp"
#include "support/processes/fake_program.hpp"
#include "troupe/cluster/membership_state.hpp"
#include "troupe/job/client_mailbox.hpp"
#include "troupe/job/job_definition.hpp"
#include "troupe/job/pause.hpp"

namespace troupe::testing {

struct simulated_process;

struct simulated_job_options {
  int world_size = 2;
  int devices_per_rank = 1;
  int num_stages = 2;
  int num_replicas = 1;
  int num_slices = 1;
  std::vector<layout::replica_content> contents = {};  ///< by stage; empty: own
  schedule_kind schedule = schedule_kind::gpipe;
  std::filesystem::path folder;  ///< empty: memory only
  std::vector<actors::job::call_request> calls;
  int num_failures = 0;               ///< at most: processes killed, actors that fail, generations asked for
  int num_io_failures = 0;            ///< a process: loaders, peer copy stores and snapshot writers that fail
  std::uint32_t failure_every = 400;  ///< things that happen, on the average
  int num_pause_requests = 0;  ///< pauses, single steps and resumptions, which users of any rank request
  std::vector<schedule::reduction> reductions = {};
  std::chrono::milliseconds progress_timeout{0};
  std::uint32_t seed = 0;
  std::uint64_t memory_every_steps = 1;  ///< 0: adapted
  bool moves_devices = false;            ///< each generation gives devices to members drawn by lot
};

/// A whole job on one thread: supervisors and all their actors, transports that deliver in any order the real
/// ones may, the agent's own state machine, and users who make calls. What happens next is drawn by lot; so
/// is who fails when.
class simulated_job {
 public:
  explicit simulated_job(simulated_job_options options);
  ~simulated_job();

  /// Until every process has ended well, the job has failed, or nothing happens any more.
  void run();

  /// No process is left, and the first that ended made all its calls: then all have, which is checked by what
  /// they were told.
  bool ended_well() const;
  const std::string& failure() const { return failure_; }
  /// By call: what the processes were told, the same for all; see `problems`.
  const std::map<std::uint32_t, actors::job::call_result>& results() const { return results_; }
  /// By step: what was told of it.
  const std::map<std::uint64_t, program::step_metrics>& steps() const { return steps_; }
  /// What processes were told that does not fit together.
  const std::vector<std::string>& problems() const { return problems_; }
  std::uint64_t generation() const { return agent_.generation(); }
  /// Failures that were brought about, in words.
  const std::vector<std::string>& history() const { return history_; }

 private:
  friend struct simulated_process;
  friend class simulated_transport;
  friend class simulated_membership;
  /// Things on their way from one process to another (0: the agent), in order; things with different `lane`s
  /// overtake.
  struct channel {
    int from = 0, to = 0;
    std::uint64_t lane = 0;
    auto operator<=>(const channel&) const = default;
  };

  void start(int rank, std::uint32_t incarnation);
  std::string draw_io_failures(int rank);
  void end(simulated_process& process, bool killed);
  bool happen();
  void carry(const channel& along, std::function<void()> what) {
    channels_[along].push_back(std::move(what));
  }
  void carry_out(const cluster::membership_outputs& outputs);
  void tell_agent(const simulated_process& from, std::function<cluster::membership_outputs()> change);
  void maybe_fail();
  void maybe_request_pause();
  void request_pause_anywhere(actors::job::pause_request request);
  void end_long_pause();
  void draw_homes();
  void poll_user(simulated_process& process);
  void enter(simulated_process& process);
  void check(const simulated_process& process, const actors::job::call_result& result);
  simulated_process* present(int rank);
  void leave(simulated_process& process);

  simulated_job_options options_;
  std::mt19937 random_;
  std::chrono::steady_clock::time_point now_{};
  virtual_actors actors_{1};
  cluster::membership_state agent_;
  std::vector<std::shared_ptr<actors::job::job_definition>> jobs_;  ///< of all processes that ever were
  std::vector<std::unique_ptr<simulated_process>> processes_;       ///< all that ever were; by id - 1
  std::map<channel, std::deque<std::function<void()>>> channels_;
  std::uint64_t next_lane_ = 1;
  int failures_left_, pause_requests_left_;
  int paused_for_ = 0;  ///< steps of virtual time in which nothing happened, since the last command
  std::string failure_;
  std::map<std::uint32_t, actors::job::call_result> results_;
  std::map<std::uint64_t, program::step_metrics> steps_;
  std::vector<std::string> problems_, history_;
};

}  // namespace troupe::testing
