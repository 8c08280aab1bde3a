#pragma once
#include "troupe/collective/shm/shm_call.hpp"

/// Collectives among members of one host. n: members, S: bytes of the call. Reductions follow the fixed tree
/// of troupe/ops/tree_reduction.hpp.
///
/// Small calls (up to control_block::max_inline_bytes for each member) have one phase. Each member writes
/// what another one needs into its slot for that member; when all have, each reads its slots. n (n-1) slots
/// are written, and a slot for a call of 32 bytes or less is one cache line.
///
/// Large calls have two phases. First each member posts where its tensors are. Then each member does its
/// range of the work directly on the others' tensors, so that n members together move no more bytes than n
/// concurrent copies of S bytes. A call ends when all members have finished, since tensors are accessed until
/// then.
namespace troupe::shm {

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

}  // namespace troupe::shm
