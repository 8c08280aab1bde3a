#pragma once
#include <memory>
#include <string>

#include "troupe/collective/communicator/communicator.hpp"
#include "troupe/collective/group/rendezvous.hpp"
#include "troupe/collective/net/exchange/network_options.hpp"
#include "troupe/collective/rendezvous/store.hpp"
#include "troupe/collective/shm/memory/peer_connector.hpp"
#include "troupe/shared_memory/shared_heap.hpp"

namespace troupe::collective {

/// What all `ucx` groups of one process share. Outlives their communicators; tensors of the heap may outlive
/// it. A process makes it after its last fork.
struct ucx_group_resources {
  /// job_token: a secret of the job's processes, at most 128 bytes. between_hosts: the same in all processes.
  /// advances: the process's engine; null: one of its own.
  explicit ucx_group_resources(const std::string& job_token, network_options between_hosts = {},
                               std::shared_ptr<progress_engine> advances = nullptr)
      : engine(advances ? std::move(advances) : std::make_shared<progress_engine>()),
        connector(job_token, {engine->event(), groups.descriptor()}),
        network(std::move(between_hosts), *engine) {}

  std::shared_ptr<progress_engine> engine;
  shared_memory::shared_heap heap;
  group_memory groups;
  known_processes processes;
  peer_connector connector;
  network_context network;
};

/// Makes this process's communicator of a group of processes. All members call it with the same name and
/// ranks, and it returns when all have. The name together with the ranks is used once in `keys`. Members of
/// one host (the same kernel, user and network namespace) use shared memory; members of different hosts
/// exchange messages over resources.network's interface, over connections that all groups of a generation
/// share.
///
/// Throws collective_error: timed_out with the rank that did not come within options.timeout, lost_member
/// with one that ended meanwhile, transport if members cannot reach each other. Throws bad_input on all
/// members if their network_sizes differ.
std::unique_ptr<communicator> make_ucx_group(const group_description& group, store& keys,
                                             ucx_group_resources& resources,
                                             communicator_options options = {});

}  // namespace troupe::collective
