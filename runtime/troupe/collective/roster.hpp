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

namespace troupe {

/// Which processes of the job live, as this one has heard. A process is a rank and an incarnation: 0 for the
/// rank's first one, one more for each that took a lost one's place. Thread-safe.
class roster {
 public:
  /// Hears of each loss after the roster knows of it; rank -1: the job has ended.
  using listener = std::function<void(int rank, const std::string& cause)>;

  explicit roster(int world_size) : entries_(static_cast<std::size_t>(world_size)) {}

  /// All are there: `incarnations` by rank.
  void on_view(const std::vector<std::uint32_t>& incarnations);
  /// The rank's last known process is gone.
  void on_loss(int rank, const std::string& cause);
  /// A group has lost this process, of which nothing else was heard yet.
  void doubt(int rank, std::uint32_t incarnation);
  void on_end(const std::string& cause);
  /// One at a time; an empty one when it returns no call of the one before is under way.
  void listen(listener heard);

  /// Waits until a process of each of `ranks` lives and returns their incarnations; nothing if that did not
  /// come within `timeout`. Throws job_failed when the job has ended.
  std::optional<std::vector<std::uint32_t>> await(std::span<const int> ranks,
                                                  std::chrono::milliseconds timeout) const;
  /// Those of `ranks` without a living process.
  std::vector<int> missing(std::span<const int> ranks) const;
  /// Why the process (rank, incarnation) is gone; nothing if it lives. Throws job_failed as above.
  std::optional<std::string> loss_of(int rank, std::uint32_t incarnation) const;

 private:
  struct entry {
    std::optional<std::uint32_t> incarnation;  ///< the last known
    std::uint32_t least = 0;                   ///< those below are gone
    std::string loss;                          ///< why
    bool lives() const { return incarnation && *incarnation >= least; }
  };
  bool all_live(std::span<const int> ranks) const;
  void throw_if_ended() const;
  void tell(int rank, const std::string& cause);

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<entry> entries_;
  std::optional<std::string> ended_;

  std::mutex listening_;
  listener heard_;
};

}  // namespace troupe
