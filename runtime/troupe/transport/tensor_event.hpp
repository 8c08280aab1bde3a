#pragma once
#include "troupe/trace/recording.hpp"
#include "troupe/transport/tensor_tag.hpp"

namespace troupe::transport {

/// Records that a tensor is sent to rank `peer`, or has arrived from there.
inline void emit_tensor(trace::trace_kind kind, const tensor_tag& tag, int peer, std::uint64_t bytes) {
  auto now = trace::now_ns();
  trace::emit({.begin_ns = now,
               .end_ns = now,
               .generation = tag.generation,
               .step = tag.step,
               .stage = static_cast<std::int32_t>(tag.stage),
               .microbatch = static_cast<std::int32_t>(tag.microbatch),
               .kind = kind,
               .detail = static_cast<std::uint8_t>(tag.role),
               .peer = static_cast<std::int16_t>(peer),
               .port = static_cast<std::uint16_t>(tag.port),
               .call = static_cast<std::uint16_t>(tag.call),
               .bytes = bytes});
}

}  // namespace troupe::transport
