#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "troupe/collective/collective_error.hpp"
#include "troupe/collective/operation.hpp"

namespace troupe {

/// What a member of a group says of itself when a call does not end, and when it gives up: to the others, by
/// whatever carries words between them when calls do not (memory they share, messages, a store).
struct last_words {
  std::uint64_t sequence = 0;                         ///< of its newest collective call, 0: none
  std::string doing = "has begun no collective yet";  ///< one line: "is in call 7, all_reduce(sum, f32[4])"
  std::vector<int> awaited = {};                      ///< members that it waits for
  std::optional<collective_failure> gave_up = std::nullopt;
  std::vector<int> ranks = {};  ///< in the world, whom it blames, if it gave up and knows
  std::string cause = {};       ///< why it gave up; empty while it still looks for the cause
};

/// Of a member that is in a call, or has finished it and made no other (sequence 0: none at all).
std::string doing_in(std::uint64_t sequence, const call_signature& signature);
std::string doing_after(std::uint64_t sequence, const call_signature& signature);
/// Adds why the member gives up.
last_words giving_up(last_words words, const collective_error& why);

/// As bytes; a long cause is cut short, so that it goes as one message at once.
std::string encoded(const last_words& words);
/// What cannot be read becomes words without meaning, nothing worse.
last_words decoded_words(std::span<const std::byte> bytes);

}  // namespace troupe
