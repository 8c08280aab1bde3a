#pragma once
#include <string>

#include "troupe/collective/ucx/peer_exchange.hpp"
#include "troupe/collective/ucx/shared_heap.hpp"

namespace troupe {

/// What all `ucx` groups of one process share. Outlives their communicators; tensors of the heap may outlive
/// it. A process makes it after its last fork.
struct ucx_group_resources {
  /// job_token: what the job's processes know and others do not, at most 128 bytes.
  explicit ucx_group_resources(const std::string& job_token) : exchange(job_token) {}

  shared_heap heap;
  peer_exchange exchange;
};

}  // namespace troupe
