#pragma once
#include <cstdint>
#include <string_view>

namespace troupe::trace {

/// What happened. Names in Perfetto: "F", "B", "I", "W", "R", "apply", "copy_state", ... An event of a kind
/// that ends with _begun is followed, when it has ended, by one event with both times: after a process was
/// killed, the last of them tells what it was doing.
enum class trace_kind : std::uint8_t {
  forward,
  backward,
  input_gradient,
  weight_gradient,
  reduce_gradient,
  apply,
  copy_state,
  write_part,  ///< of a snapshot, to disk
  commit,      ///< a snapshot is complete; step: its step
  quiesce,
  restore,  ///< the generation has been restored
  fence,    ///< no event of an earlier generation follows; generation: the new one
  view,     ///< a new generation has begun
  step,
  all_reduce,        ///< of a stage's gradients over the lanes along an axis of the mesh (G)
  action_begun,      ///< detail: the trace_kind of the action
  collective_begun,  ///< begin of a `collective`, with the same fields
  collective,        ///< name: the group; step: the sequence number; detail: collective_kind; bytes
  send,              ///< a tensor to rank `peer`; detail: tensor_role; bytes
  receive,           ///< a tensor from rank `peer`, which has arrived; see send
  wait_begun,        ///< begin of a `wait`, with the same fields
  wait,              ///< detail: wait_reason; name, step: of a collective; stage, microbatch: of the action
  actor_born,        ///< name: the actor
  actor_failed,      ///< name: the actor
  actor_restarted    ///< name: the actor
};
constexpr auto num_trace_kinds = static_cast<std::size_t>(trace_kind::actor_restarted) + 1;
std::string_view to_string(trace_kind kind);

/// What a thread waits for.
enum class wait_reason : std::uint8_t { tensor, samples, collective, state_copy };
std::string_view to_string(wait_reason reason);

/// One span (or instant, when begin == end) on one thread. Times are std::chrono::steady_clock nanoseconds,
/// which all processes of one host share. What does not apply keeps its default.
struct trace_event {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t generation = 0;
  std::uint64_t step = 0;  ///< of a collective, its sequence number
  std::int32_t stage = -1;
  std::int32_t microbatch = -1;
  trace_kind kind = trace_kind::forward;
  std::uint8_t detail = 0;  ///< its meaning depends on the kind: see trace_kind
  std::int16_t peer = -1;   ///< rank of the other process; -1: none
  std::uint16_t port = 0;   ///< of a tensor, see tensor_tag
  std::uint16_t call = 0;   ///< of a tensor: the call's number, modulo 2^16
  std::uint16_t name = 0;   ///< in the segment's table of names; 0: none
  std::uint64_t bytes = 0;  ///< recorded up to 2^48 - 1
  bool operator==(const trace_event&) const = default;
};

/// std::chrono::steady_clock, in nanoseconds.
std::int64_t now_ns();

}  // namespace troupe::trace
