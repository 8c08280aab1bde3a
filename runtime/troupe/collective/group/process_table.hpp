#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "troupe/collective/group.hpp"

namespace troupe {

/// Which processes of the job are alive, as far as this one knows. A process is a rank and an incarnation: 0
/// for the rank's first process, one more for each replacement of a lost one. Thread-safe.
class process_table {
 public:
  /// Called for each loss, after the table has changed. No rank: the job has ended.
  using listener = std::function<void(std::optional<world_rank> rank, const std::string& cause)>;

  explicit process_table(int world_size) : entries_(static_cast<std::size_t>(world_size)) {}

  /// All ranks have a living process: `incarnations` by rank.
  void on_view(const std::vector<std::uint32_t>& incarnations);
  /// The rank's last known process is lost.
  void on_loss(world_rank rank, const std::string& cause);
  /// A group has lost this process, but on_loss() has not been called for it. wait_for() does not return it
  /// any more.
  void suspect(world_rank rank, std::uint32_t incarnation);
  void on_end(const std::string& cause);
  /// Replaces the listener; an empty one removes it. When it returns, no call of the old one is running.
  void set_listener(listener next);

  /// Waits until each of `ranks` has a living process, and returns their incarnations; nothing after
  /// `timeout`. Throws job_failed when the job has ended.
  std::optional<std::vector<std::uint32_t>> wait_for(std::span<const world_rank> ranks,
                                                     std::chrono::milliseconds timeout) const;
  /// Those of `ranks` without a living process.
  std::vector<world_rank> missing(std::span<const world_rank> ranks) const;
  /// Why the process (rank, incarnation) was lost; nothing if it is alive. Throws job_failed as above.
  std::optional<std::string> loss_of(world_rank rank, std::uint32_t incarnation) const;

 private:
  struct entry {
    std::optional<std::uint32_t> incarnation;  ///< the last known one
    std::uint32_t first_possible = 0;          ///< smaller incarnations are lost
    std::string loss;                          ///< why the last one was lost
    bool is_alive() const { return incarnation && *incarnation >= first_possible; }
  };
  bool all_alive(std::span<const world_rank> ranks) const;
  void throw_if_ended() const;
  void notify(std::optional<world_rank> rank, const std::string& cause);

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<entry> entries_;
  std::optional<std::string> ended_;

  std::mutex notifying_;  // held while the listener runs
  listener listener_;
};

}  // namespace troupe
