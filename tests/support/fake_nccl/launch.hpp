#pragma once
#include <nccl.h>

#include <cstddef>
#include <vector>

namespace troupe::fake_nccl {

enum class call_kind { all_reduce, reduce_scatter, all_gather, broadcast, reduce, send, receive };

/// One call of one member. `count` is what its function takes: the elements of a part of reduce_scatter and
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

/// What a communicator was given between group_start and group_end, or by a call alone: it runs as one.
using launch = std::vector<member_call>;

/// Carries out what all members of a communicator have launched, by member. Returns false, and does nothing,
/// where their calls do not fit each other: NCCL would wait for ever, or bring wrong elements.
bool carry_out(const std::vector<launch>& by_member);

}  // namespace troupe::fake_nccl
