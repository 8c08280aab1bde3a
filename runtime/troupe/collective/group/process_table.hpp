#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "troupe/collective/calls/group.hpp"

namespace troupe::collective {

/// A process that the membership has lost.
struct lost_process {
  world_rank rank;
  std::string cause;
};

/// What ends the groups of a process's World.
struct groups_end {
  bool is_job_end = false;         ///< else a fence, after which new groups can be made
  std::uint64_t generation = 0;    ///< at a fence: the one that begins; groups of those before it end
  std::vector<world_rank> lost{};  ///< at a fence; empty: no process was lost
  std::string cause;
};

/// Which processes of the job are alive, and its generation, as far as this process knows. A process is a
/// rank and an incarnation: 0 for the rank's first process, one more for each replacement of a lost one.
/// Thread-safe.
class process_table {
 public:
  /// Called at each fence and at the end of the job, after the table has changed.
  using listener = std::function<void(const groups_end& why)>;
  /// The one that begins with the job. Each fence raises it.
  static constexpr std::uint64_t first_generation = 1;

  explicit process_table(int world_size) : entries_(static_cast<std::size_t>(world_size)) {}

  /// All ranks have a living process: `incarnations` by rank.
  void on_view(std::uint64_t generation, const std::vector<std::uint32_t>& incarnations);
  /// `generation` begins: those before it have ended, because these processes were lost, or for `cause`.
  void on_fence(std::uint64_t generation, const std::vector<lost_process>& lost, const std::string& cause);
  /// A group has lost this process, but on_fence() has not been called for it. wait_for() does not return it
  /// any more, until the next fence says who is lost, or clear_suspicions() is called.
  void suspect(world_rank rank, std::uint32_t incarnation);
  /// No fence has come: groups lose a process also when a connection to it ends.
  void clear_suspicions();
  /// `stop_signal`: that stopped the job; 0: it has failed.
  void on_end(const std::string& cause, int stop_signal = 0);
  /// Replaces the listener; an empty one removes it. When it returns, no call of the old one is running.
  void set_listener(listener next);

  /// Waits until each of `ranks` has a living process, and returns their incarnations; nothing after
  /// `timeout`. Throws job_failed when the job has ended, job_stopped where a signal stopped it.
  std::optional<std::vector<std::uint32_t>> wait_for(std::span<const world_rank> ranks,
                                                     std::chrono::milliseconds timeout) const;
  /// Those of `ranks` without a living process.
  std::vector<world_rank> missing(std::span<const world_rank> ranks) const;
  std::uint64_t generation() const;
  /// Returns when `generation` has ended, or after `timeout`.
  void wait_for_end_of(std::uint64_t generation, std::chrono::milliseconds timeout) const;
  /// Why `generation` has ended: the first fence after it; nothing if it has not. Of very old ones, the
  /// oldest fence that is known.
  std::optional<groups_end> end_of(std::uint64_t generation) const;
  /// Why the process (rank, incarnation) was lost; nothing if it is alive. Throws job_failed as above.
  std::optional<std::string> loss_of(world_rank rank, std::uint32_t incarnation) const;

 private:
  struct entry {
    std::optional<std::uint32_t> incarnation;  ///< the last known one; none: none is known
    std::uint32_t first_possible = 0;          ///< processes with smaller incarnations are lost
    bool is_suspected = false;                 ///< set by suspect(), until clear_suspicions()
    std::string loss;                          ///< why the last one was lost
    bool is_alive() const { return incarnation && *incarnation >= first_possible; }
  };
  bool all_alive(std::span<const world_rank> ranks) const;
  void forget_suspicions();
  void throw_if_ended() const;
  void notify(const groups_end& why);

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<entry> entries_;
  std::uint64_t generation_ = first_generation;
  std::map<std::uint64_t, groups_end> fences_;  ///< by the generation that begins
  std::optional<std::string> ended_;
  int stop_signal_ = 0;  ///< that ended it; 0: none

  std::mutex notifying_;  // held while the listener runs
  listener listener_;
};

}  // namespace troupe::collective
