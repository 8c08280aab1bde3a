#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "troupe/collective/calls/group.hpp"

namespace troupe {

enum class collective_failure : std::uint8_t {
  timed_out,    ///< a member did not arrive in time
  mismatch,     ///< members made calls with different operations, sizes, types or roots
  lost_member,  ///< a member's process has ended
  cancelled,    ///< a member cancelled a call, aborted the group, or ended it with calls in flight
  transport     ///< the network or the library below has failed
};

/// A collective operation has failed, and with it its group on all members: all calls, pending ones too, fail
/// with the same error. Make a new group. what() names group, sequence number, operation and ranks, and says
/// what each of these was doing.
class collective_error : public std::runtime_error {
 public:
  collective_error(collective_failure kind, std::string group, std::uint64_t sequence,
                   std::vector<world_rank> ranks, const std::string& message)
      : std::runtime_error(message),
        kind_(kind),
        group_(std::move(group)),
        sequence_(sequence),
        ranks_(std::move(ranks)) {}

  collective_failure kind() const { return kind_; }
  const std::string& group() const { return group_; }
  /// Of the call that failed first, counted from 1 in each group; 0: no call.
  std::uint64_t sequence() const { return sequence_; }
  /// Of the members that are missing, lost, or disagree with each other.
  const std::vector<world_rank>& ranks() const { return ranks_; }

 private:
  collective_failure kind_;
  std::string group_;
  std::uint64_t sequence_;
  std::vector<world_rank> ranks_;
};

}  // namespace troupe
