#pragma once
#include <nccl.h>

#include <cstddef>
#include <vector>

namespace troupe::fake_nccl {

enum class call_kind { all_reduce, reduce_scatter, all_gather, broadcast, reduce, send, receive };

/// One call of one member. `count` is that of NCCL's function: the elements of a part in reduce_scatter and
/// all_gather. root: of broadcast and reduce; the peer of send and receive.
struct member_call {
  call_kind kind = call_kind::all_reduce;
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  int root = 0;
};

/// The calls of a communicator between group_start and group_end, or a single call, which run as one unit.
using launch = std::vector<member_call>;

/// The most bytes that a member gives to a call, and gets from it.
std::size_t input_bytes_of(const member_call& call, int num_members);
std::size_t output_bytes_of(const member_call& call, int num_members);

/// Executes the launches of all members of a communicator. Returns false and does nothing if their calls do
/// not match: NCCL would hang or give wrong elements.
bool carry_out(const std::vector<launch>& by_member);

}  // namespace troupe::fake_nccl
