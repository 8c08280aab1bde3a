#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "troupe/collective/last_words.hpp"

namespace troupe {

/// What this member has heard of another one, by its messages.
struct heard_of {
  bool has_come = false;   ///< said hello
  bool has_left = false;   ///< ended the group when its calls were done
  std::string lost_cause;  ///< why there is no connection; empty: there is one
  std::chrono::steady_clock::time_point lost_at;
  std::uint64_t sequence = 0;        ///< of the newest of its collective calls
  call_signature signature;          ///< of that
  std::optional<last_words> answer;  ///< to the last question
  int num_awaited = 0;               ///< transfers of calls, from it and to it, that are not done
};

}  // namespace troupe
