#pragma once
#include <cstdint>
#include <memory>

#include "troupe/actor/message_storage.hpp"
#include "troupe/program/batch_source.hpp"

namespace troupe::actors::messages {

/// Device -> loader: read the batch of a step, or of an evaluation the one with this number. The loader sends
/// batch_ready to the device. In this process only.
struct want_batch {
  std::uint32_t call = 0;
  std::uint32_t source = 0;
  std::uint64_t step = 0;
  std::uint64_t num_at_once = 1;  ///< how many batches the replicas run at a time
};

/// User's thread -> supervisor -> loader: add a source. Sources are numbered from 0 in this order.
struct add_source {
  std::shared_ptr<batch_source> source;
};

}  // namespace troupe::actors::messages

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::add_source)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::want_batch)
