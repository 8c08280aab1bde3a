#pragma once
#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "troupe/collective/calls/operation.hpp"

namespace troupe::collective {

/// The factor from algorithm bandwidth (bytes / time) to bus bandwidth, which can be compared with the speed
/// of a link whatever the number of members n is. As in nccl-tests (doc/PERFORMANCE.md): 2(n-1)/n for
/// all_reduce; (n-1)/n for reduce_scatter, all_gather, all_to_all, gather and scatter; 1 for broadcast,
/// reduce, send and receive; 0 for barrier.
double bus_factor(collective_kind kind, int num_members);

/// The bytes of a call as nccl-tests counts them: all parts together for reduce_scatter, all_gather,
/// all_to_all, gather and scatter, the tensor's otherwise.
std::int64_t profiled_bytes(const call_signature& signature);

/// What the calls of one line of the profile have in common.
struct profile_key {
  std::string group;
  collective_kind kind = collective_kind::barrier;
  std::string algorithm;
  auto operator<=>(const profile_key&) const = default;
};

/// All calls of one member with one key. Bandwidths are in bytes per second, and 0 if no time or byte was
/// measured.
struct profile_line {
  int num_members = 0;
  std::uint64_t count = 0;
  double bytes = 0;
  double active_s = 0;   ///< from the beginning to the end of each call
  double exposed_s = 0;  ///< during which the program waited for them
  double covered_s = 0;  ///< the part of active_s without a waiting thread: communication that overlapped

  double mean_s() const;
  double algorithm_bandwidth() const;
  double bus_bandwidth(collective_kind kind) const;
  /// covered_s / active_s, in [0, 1].
  double overlap() const;
};

/// How much time a member's collective calls take, and how much of it overlaps with computation. Thread-safe.
class communication_profile {
 public:
  using duration = std::chrono::duration<double>;

  /// A call has ended well.
  void add_call(const profile_key& key, int num_members, std::int64_t bytes, duration active);
  /// A thread has waited for such a call: `waited` in all, `while_active` of it after the call had begun.
  void add_wait(const profile_key& key, duration waited, duration while_active);

  std::map<profile_key, profile_line> lines() const;
  /// A table with one line for each key; empty without calls.
  std::string text(const std::string& title) const;
  /// {"event":"communication","rank":R,"lines":[{"group":..,"operation":..,...}]}
  std::string json(world_rank rank) const;

 private:
  mutable std::mutex mutex_;
  std::map<profile_key, profile_line> lines_;
};

}  // namespace troupe::collective
