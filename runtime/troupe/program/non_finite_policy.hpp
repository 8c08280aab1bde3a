#pragma once
#include <cstdint>
#include <string_view>

namespace troupe {

/// What a job does about a loss or a gradient that is infinite or NaN. Steps that f16's loss scaling skips do
/// not count: overflow is how it finds its scale.
enum class non_finite_policy : std::uint8_t {
  stop,  ///< the job ends with an error on the last state that was finite
  skip,  ///< the step is left out on all stages; they combine their gradients' norms to know
  go_on  ///< nobody looks
};

std::string_view to_string(non_finite_policy policy);
/// Throws bad_input naming what is known.
non_finite_policy non_finite_policy_from(std::string_view name);

}  // namespace troupe
