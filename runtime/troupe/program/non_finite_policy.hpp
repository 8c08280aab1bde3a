#pragma once
#include <cstdint>
#include <string_view>

namespace troupe {

/// What a job does when a loss or a gradient is infinite or NaN. Gradients that are so in a
/// step that f16's loss scaling skips do not count as long as its scale can be lowered: overflow is how it
/// finds it. At the least scale they count.
enum class non_finite_policy : std::uint8_t {
  stop,  ///< the job ends with an error on the last state that was finite
  skip,  ///< all stages skip the step; they exchange their gradients' norms to agree
  go_on  ///< losses and gradients are not looked at
};

std::string_view to_string(non_finite_policy policy);
/// Throws bad_input naming what is known.
non_finite_policy non_finite_policy_from(std::string_view name);

}  // namespace troupe
