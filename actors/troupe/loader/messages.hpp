#pragma once
#include <caf/allowed_unsafe_message_type.hpp>
#include <cstdint>

namespace troupe {

/// Device -> loader: the samples of a step are wanted; answered with `batch_ready`. In this process only.
struct want_batch {
  std::uint32_t call = 0;
  std::uint32_t source = 0;
  std::uint64_t step = 0;
};

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::want_batch)
