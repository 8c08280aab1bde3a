#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "troupe/collective/collective_error.hpp"
#include "troupe/collective/group.hpp"
#include "troupe/collective/store.hpp"

namespace troupe {

/// What a member leaves behind when its group fails.
struct last_words {
  std::uint64_t sequence = 0;  ///< of its newest collective call, 0: none
  std::string doing;           ///< one line: "waits in call 7, all_reduce(sum, f32[4])"
  /// Why it gave up, if it was the first to know: no ranks and no cause while it still looks for them.
  std::optional<collective_failure> gave_up = std::nullopt;
  std::vector<int> ranks = {};  ///< in the world, whom it blames
  std::string cause = {};
};

/// How the members of a failing group learn from each other what happened, where the library below only says
/// that something did: each leaves its last words under a key of the store and reads those of the others.
/// Who leaves none within the grace time has ended, or is stopped, or cannot reach the store.
class post_mortem {
 public:
  /// `place` outlives it. The group's name and ranks together are used once in `place`.
  post_mortem(group_description group, store& place,
              std::chrono::milliseconds grace = std::chrono::seconds(2))
      : group_(std::move(group)), place_(place), grace_(grace) {}

  /// Replaces what this member left before.
  void leave(const last_words& words);
  /// By member, this one's too; nothing for those who left none within the grace time, which is one for all.
  std::vector<std::optional<last_words>> read();

 private:
  std::string key(int member) const;

  group_description group_;
  store& place_;
  std::chrono::milliseconds grace_;
};

}  // namespace troupe
