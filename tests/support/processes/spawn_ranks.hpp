#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <source_location>
#include <span>
#include <string_view>
#include <vector>

namespace troupe::testing {

struct rank_slots;

/// The view of one process of spawn_ranks. Ranks exchange bytes through slots in shared memory: each rank
/// posts once under a slot number, and any rank may wait for it.
class test_rank {
 public:
  test_rank(rank_slots& slots, int rank, int size) : slots_(slots), rank_(rank), size_(size) {}

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Throws if this rank has posted under `slot` before.
  void post(int slot, std::span<const std::byte> bytes = {});
  /// Sleeps until `rank` has posted under `slot`. If that never happens, spawn_ranks ends all ranks at its
  /// deadline.
  std::vector<std::byte> wait_for(int rank, int slot);
  /// Posts, and waits for every rank's bytes; as a barrier, with no bytes.
  std::vector<std::vector<std::byte>> all_gather(int slot, std::span<const std::byte> bytes = {});
  void barrier(int slot) { all_gather(slot); }

  /// Sends SIGKILL, SIGSTOP or SIGCONT to another rank or this one. A rank killed this way does not count as
  /// failed.
  void kill(int rank);
  /// Returns when the rank has stopped.
  void stop(int rank);
  void resume(int rank);
  /// Returns when the process of `rank` has ended.
  void wait_for_death(int rank);

 private:
  rank_slots& slots_;
  int rank_;
  int size_;
};

/// Throws with the place of the call unless `condition` holds: a check for use in ranks, where Catch2's do
/// not work.
void expect(bool condition, std::string_view what,
            std::source_location where = std::source_location::current());

/// Runs `body` in `count` child processes, forked before any of them runs `body` (UCX does not survive a
/// fork). Returns when all have ended without an error. Throws std::runtime_error naming the ranks that
/// threw, were killed or did not end within `deadline`, and kills the others. Exceptions are printed on
/// standard error.
void spawn_ranks(int count, const std::function<void(test_rank&)>& body,
                 std::chrono::seconds deadline = std::chrono::seconds(180));

}  // namespace troupe::testing
