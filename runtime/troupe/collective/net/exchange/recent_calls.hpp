#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "troupe/collective/calls/group.hpp"
#include "troupe/collective/calls/operation.hpp"
#include "troupe/collective/net/exchange/messages.hpp"

namespace troupe::collective {

/// The last collective calls of this member, with which messages of the others are compared.
class recent_calls {
 public:
  /// `group` outlives it.
  explicit recent_calls(const group_description& group) : group_(group) {}

  void add(std::uint64_t sequence, const call_signature& signature);
  /// The number of the newest call, and its signature if there was one.
  std::pair<std::uint64_t, std::optional<call_signature>> newest() const;
  /// Throws collective_error (mismatch) if a message that says which collective call its sender makes names
  /// another one than this member's of that number. Calls that are too old, or not made yet, match.
  void require_same(const net::message_header& theirs) const;
  /// Throws the same if a message does not belong to this call.
  void require(const call_signature& own, const net::message_header& theirs) const;

 private:
  static constexpr std::size_t capacity = 64;
  const group_description& group_;
  std::map<std::uint64_t, call_signature> calls_;
};

}  // namespace troupe::collective
