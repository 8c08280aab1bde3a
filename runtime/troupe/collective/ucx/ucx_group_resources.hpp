#pragma once
#include <string>

#include "troupe/collective/ucx/network_context.hpp"
#include "troupe/collective/ucx/peer_exchange.hpp"
#include "troupe/collective/ucx/shared_heap.hpp"

namespace troupe {

/// What all `ucx` groups of one process share. Outlives their communicators; tensors of the heap may outlive
/// it. A process makes it after its last fork.
struct ucx_group_resources {
  /// job_token: what the job's processes know and others do not, at most 128 bytes.
  /// between_hosts: the same in all processes.
  explicit ucx_group_resources(const std::string& job_token, network_options between_hosts = {})
      : exchange(job_token), network(std::move(between_hosts)) {}

  shared_heap heap;
  peer_exchange exchange;
  network_context network;
};

}  // namespace troupe
