#pragma once
#include <caf/actor.hpp>
#include <cereal/types/vector.hpp>
#include <cstdint>
#include <vector>

#include "troupe/actor/message_storage.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::actors::messages {

/// Supervisor -> gatherer: collect the tensors of this call for this process's program. Idempotent.
struct gather_tensors {
  std::uint64_t generation = 0;
  std::uint32_t call = 0;
  std::uint64_t num_tensors = 0;
  bool from_caches = false;             ///< the call is over: request the tensors from other caches
  std::vector<caf::actor> caches = {};  ///< if from_caches: the gatherers of all other processes
};

/// Transport -> gatherer: tensor `index` of a call. In this process only.
struct tensor_gathered {
  std::uint64_t generation = 0;
  std::uint32_t call = 0;
  std::uint32_t index = 0;
  tensor value;
};

/// Gatherer of a process that was started again -> gatherers of all others, a request: send the cached
/// tensors of `call`. Each sends the tensors (data plane); reply: cached_sent.
struct get_cached {
  std::uint64_t generation = 0;
  std::int32_t rank = 0;  ///< rank of the requester
  std::uint32_t call = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(generation, rank, call);
  }
};
struct cached_sent {
  std::vector<std::uint32_t> indices;  ///< indices in the call of the tensors that it sends
  template <class Archive>
  void serialize(Archive& archive) {
    archive(indices);
  }
};

}  // namespace troupe::actors::messages

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::gather_tensors)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::tensor_gathered)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::get_cached)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::cached_sent)
