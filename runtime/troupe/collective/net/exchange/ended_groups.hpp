#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "troupe/collective/net/exchange/messages.hpp"

namespace troupe::collective {

/// The groups that this process has ended and some other members have not, which may still send messages. Not
/// thread-safe.
///
/// A message that waits to be fetched is kept until its sender ends the group too, and then released, which
/// lets the sender go on. Not before: a reply to a process that is stopped would stay in UCX, which cannot
/// drop it. All other messages are dropped. A group is forgotten when all other members have ended it, or
/// their connections are lost.
class ended_groups {
 public:
  /// A member that has not ended the group.
  struct member {
    int connection = 0;
    std::vector<void*> unwanted{};  ///< descriptors of messages that wait to be fetched
  };
  /// release: lets the sender of a message that waits to be fetched go on.
  explicit ended_groups(std::function<void(void* descriptor)> release) : release_(std::move(release)) {}

  /// others: by number. is_aborted: this member has aborted it.
  void add(std::uint64_t group, std::map<int, member> others, bool is_aborted);
  bool contains(std::uint64_t group) const { return groups_.contains(group); }
  /// A message of a group that is contained. descriptor: null, or of a message that waits to be fetched.
  /// Returns whether it will be released later.
  bool on_message(const net::message_header& header, void* descriptor);
  /// Its messages have ended with it.
  void on_lost(int connection);
  void clear() { groups_.clear(); }
  /// Whether a group that this member has aborted has members that have not ended it.
  bool has_aborted() const;

 private:
  struct ended_group {
    std::map<int, member> others;
    bool is_aborted = false;
  };
  std::function<void(void*)> release_;
  std::map<std::uint64_t, ended_group> groups_;  ///< by number; none without others
};

}  // namespace troupe::collective
