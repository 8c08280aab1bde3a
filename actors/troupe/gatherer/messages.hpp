#pragma once
#include <caf/allowed_unsafe_message_type.hpp>
#include <cereal/types/vector.hpp>
#include <cstdint>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Supervisor -> gatherer: tensors of this call come for this process's program. Told twice, it counts once.
struct gather_tensors {
  std::uint64_t generation = 0;
  std::uint32_t call = 0;
  std::uint64_t num_tensors = 0;
  bool kept_by_others = false;  ///< the call is over: the others are to give what they keep
};

/// Transport -> gatherer: a tensor of a call. In this process only.
struct tensor_gathered {
  std::uint64_t generation = 0;
  std::uint32_t call = 0;
  std::uint32_t place = 0;
  tensor value;
};

/// Gatherer -> gatherer of another process, which was not there in this call: what of it do you keep?
/// Answered with tensors, and with kept_given.
struct want_kept {
  std::uint64_t generation = 0;
  std::int32_t rank = 0;  ///< who asks
  std::uint32_t call = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, rank, call);
  }
};
struct kept_given {
  std::uint64_t generation = 0;
  std::int32_t rank = 0;  ///< who gives
  std::uint32_t call = 0;
  std::vector<std::uint32_t> places;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, rank, call, places);
  }
};

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::gather_tensors)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::tensor_gathered)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::want_kept)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::kept_given)
