#pragma once
#include "troupe/collective/shm/shm_call.hpp"

/// Collectives among members of one host. n: members, S: bytes of the call, F: of a node in f32. Reductions
/// follow the fixed tree of troupe/ops/tree_reduction.hpp.
///
/// Small calls (up to control_block::max_inline_bytes for each member) have one phase. Each member writes
/// what another one needs into its slot for that member. When all have, each reads its slots. In all, n (n-1)
/// slots are written, and a slot for a call of 32 bytes or less is one cache line.
///
/// Large calls have two phases. First each member posts where its tensors are. Then each member does its
/// range of the work directly on the others' tensors, so that n members together move no more bytes than n
/// concurrent copies of S bytes. A call ends when all members have finished, since tensors are accessed until
/// then.
///
/// Each member fills n - 1 slots in a call, its messages. Bytes that a member moves, with its own part:
///
/// | call | small: posted / read | large: read / written |
/// |---|---|---|
/// | all_reduce | (n-1) S / n S | S / S |
/// | all_reduce of N nodes, m of the member | (n-1) m F / N F | N F/n / S |
/// | reduce_scatter | S (n-1)/n / S | S / S/n |
/// | reduce | S (the root: 0) / 0 (the root: n S) | S / S/n |
/// | all_gather | S (n-1)/n / S | S/n / S |
/// | broadcast | 0 (the root: (n-1) S) / S (the root: 0) | S / S (the root: 0 / 0) |
/// | gather | S/n (the root: 0) / 0 (the root: S) | S/n / S/n |
/// | scatter | 0 (the root: S (n-1)/n) / S/n | S/n / S/n |
/// | all_to_all | S (n-1)/n / S | S / S |
/// | barrier | 0 / 0 | |
/// | send, receive | S / S, one slot | S / S, one slot |
///
/// A tensor in private memory costs one more copy on its own member in a large call.
namespace troupe::collective::shm {

algorithm all_reduce(shm_call call);
algorithm reduce_scatter(shm_call call);
algorithm all_gather(shm_call call);
algorithm broadcast(shm_call call);
algorithm reduce(shm_call call);
algorithm gather(shm_call call);
algorithm scatter(shm_call call);
algorithm all_to_all(shm_call call);
algorithm barrier(shm_call call);
/// Point to point. `sequence` counts the sends from one member to another.
algorithm send(control_block& block, member_memory& memory, call_scope scope,
               const collective_operation& what, std::uint64_t sequence);
algorithm receive(control_block& block, member_memory& memory, call_scope scope,
                  const group_description& group, const collective_operation& what, std::uint64_t sequence);

}  // namespace troupe::collective::shm
