#pragma once
#include <cstddef>
#include <vector>

#include "troupe/collective/hierarchy/placement.hpp"
#include "troupe/collective/share.hpp"

namespace troupe::hierarchy {

/// Some of the elements that one member, the taker, brings together from all hosts.
struct stretch {
  share elements;
  /// By host: who there sends the taker what that host has of these elements, and receives the result from
  /// it.
  std::vector<int> partners;
};

/// Which member takes which elements of a call between hosts, in stretches that go as one message. On each
/// host the elements of the takers of another host are shared out evenly, so every byte goes between two
/// hosts once, and every member has a hand in it. A value; the same on all members.
class division {
 public:
  struct options {
    std::size_t element_bytes = 4;
    std::size_t longest_bytes = std::size_t{1} << 19;  ///< of a stretch
  };
  /// takes: by member, what it takes; those of one host in order.
  division(const placement& where, const std::vector<share>& takes, const options& wanted);

  /// What a member takes, in order.
  const std::vector<stretch>& of(int member) const { return stretches_[static_cast<std::size_t>(member)]; }
  /// The most stretches that a member takes.
  std::size_t most() const;

 private:
  void divide(const placement& where, const std::vector<share>& takes, int host, const options& wanted);

  std::vector<std::vector<stretch>> stretches_;  // by member
};

/// `count` elements shared out to the members of `hosts`, evenly for these hosts, and on each for its
/// members.
std::vector<share> shares_by_host(const placement& where, const std::vector<int>& hosts, std::int64_t count,
                                  std::size_t element_bytes);

}  // namespace troupe::hierarchy
