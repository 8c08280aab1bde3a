#pragma once
#include <chrono>
#include <string>

#include "troupe/collective/group.hpp"
#include "troupe/collective/post_mortem.hpp"
#include "troupe/collective/store.hpp"

namespace troupe {

/// Carries the members' last words where the library below breaks with the group: each leaves its own under a
/// key of the store and reads those of the others. Who leaves none within the grace time has ended, or is
/// stopped, or cannot reach the store.
class left_words {
 public:
  /// Both outlive it. The group's name and ranks together are used once in `place`.
  left_words(const group_description& group, store& place,
             std::chrono::milliseconds grace = std::chrono::seconds(2))
      : group_(group), place_(place), grace_(grace) {}

  /// Replaces what this member left before.
  void leave(const last_words& words);
  /// This member's too; the grace time is one for all.
  members_words read();

 private:
  std::string key(int member) const;

  const group_description& group_;
  store& place_;
  std::chrono::milliseconds grace_;
};

}  // namespace troupe
