#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "troupe/collective/net/exchange/messages.hpp"

namespace troupe::collective {

/// Messages of groups that this process has not made yet. Not thread-safe.
///
/// Before a group is made here, another member says hello, again when it has another address, and may give
/// up. So the newest message of each kind and member is enough. Beyond `most` messages of all groups, those
/// of the group for which another one comes are dropped, and the group is remembered as incomplete: it cannot
/// be made.
class early_messages {
 public:
  struct message {
    net::message_header header;
    std::vector<std::byte> bytes;
  };
  struct of_group {
    std::vector<message> messages;  ///< in the order in which they came
    bool is_incomplete = false;
  };

  explicit early_messages(std::size_t most) : most_(most) {}

  std::size_t most() const { return most_; }
  void keep(const net::message_header& header, std::span<const std::byte> body);
  /// The messages of a group, which is forgotten here.
  of_group take(std::uint64_t group);

 private:
  const std::size_t most_;
  std::size_t count_ = 0;
  std::map<std::uint64_t, of_group> groups_;  ///< by number
};

}  // namespace troupe::collective
