#pragma once
#include <cstdint>
#include <string_view>

#include "troupe/contents/tensor_contents.hpp"

namespace troupe {

/// The end of the name of a tensor, i64 [], in which an optimizer counts the steps of a parameter:
/// "0.weight/step".
constexpr std::string_view steps_suffix = "/step";

/// The count of a parameter that goes on from a state without counts, of an earlier version of Troupe, in
/// which every parameter had the steps of the job: as many as the job.
constexpr std::int64_t unknown_steps = -1;

/// Whether a tensor of a state is such a count.
inline bool is_step_count(const tensor_contents& one) {
  return one.type == dtype::i64 && one.whole.empty() && one.name.ends_with(steps_suffix);
}

}  // namespace troupe
