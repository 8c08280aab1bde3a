#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe {

enum class collective_failure : std::uint8_t {
  timed_out,    ///< somebody did not come in time
  mismatch,     ///< members called different operations, sizes, types or roots
  lost_member,  ///< a member's process has ended
  cancelled,    ///< a member cancelled a call, aborted the group, or ended it with calls in flight
  transport     ///< the library or the network below refused
};

/// A collective operation failed. The group it belongs to is of no use any more on any member: all its calls,
/// waiting ones too, fail with the same error; a new group works. what() names group, sequence number,
/// operation and ranks, and what each of these was doing.
class collective_error : public std::runtime_error {
 public:
  collective_error(collective_failure kind, std::string group, std::uint64_t sequence, std::vector<int> ranks,
                   const std::string& message)
      : std::runtime_error(message),
        kind_(kind),
        group_(std::move(group)),
        sequence_(sequence),
        ranks_(std::move(ranks)) {}

  collective_failure kind() const { return kind_; }
  const std::string& group() const { return group_; }
  /// Of the call that failed first, counted from 1 in each group.
  std::uint64_t sequence() const { return sequence_; }
  /// In the world: those who are missing, lost, or do not agree with each other.
  const std::vector<int>& ranks() const { return ranks_; }

 private:
  collective_failure kind_;
  std::string group_;
  std::uint64_t sequence_;
  std::vector<int> ranks_;
};

}  // namespace troupe
