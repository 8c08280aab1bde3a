#pragma once
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "troupe/collective/calls/work.hpp"
#include "troupe/collective/diagnostics/collective_position.hpp"

namespace troupe::collective {

/// Keeps the last calls of one member in one group, for the error message when one of them fails (as
/// PyTorch's flight recorder). Thread-safe.
class flight_recorder {
 public:
  /// ranks: of the members, for the text. capacity: calls that are kept.
  explicit flight_recorder(std::vector<world_rank> ranks, std::size_t capacity = 64)
      : ranks_(std::move(ranks)), entries_(capacity) {}

  /// A call did not end in its first round.
  void on_wait(const call& what);
  void on_end(const call& what);
  /// One line for each call, oldest first: "#7 all_reduce(sum, f32[4]) done in 0.12 ms", "#8 barrier done at
  /// once". The last line has no line end, so that a message may go on.
  std::string text() const;
  /// The newest collective call, without the group's name and ranks. Sends and receives do not count.
  collective_position position() const;

 private:
  struct entry {
    std::uint64_t sequence = 0;
    call_signature signature;
    int peer = -1;
    call::clock::time_point begun, ended;
    enum class phase : std::uint8_t { running, done, failed } is = phase::running;
  };
  std::string describe(const entry& recorded) const;
  static std::string outcome(const entry& recorded);
  entry& add(const call& what);
  entry* find(const call& what);
  std::size_t place_of(std::size_t age) const {
    return next_ > age ? next_ - 1 - age : next_ + entries_.size() - 1 - age;
  }
  /// age: 0 for the newest entry, below num_kept_.
  const entry& newest(std::size_t age) const { return entries_[place_of(age)]; }

  std::vector<world_rank> ranks_;
  mutable std::mutex mutex_;
  std::vector<entry> entries_;  ///< a ring buffer: the newest calls
  std::size_t next_ = 0;        ///< index of the next entry
  std::size_t num_kept_ = 0;
};

}  // namespace troupe::collective
