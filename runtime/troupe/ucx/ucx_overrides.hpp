#pragma once

namespace troupe::ucx {

/// Five functions of UCX that this library replaces, for all of UCX in this process. The dynamic linker
/// takes the program's definitions instead of those in libucs, libucp and libucm.
///
/// - `ucs_sysv_alloc` makes the System V segments through which tensors pass. UCX makes them for user and
///   group (0660); here they are the user's alone (0600) from the call of shmget on.
/// - `ucs_get_system_id` says which processes share a host, hence memory. UCX wakes a receiver in shared
///   memory by an abstract Unix socket, which no other network namespace reaches, but calls processes that
///   share IPC and not the network neighbours; both would sleep for ever. It also calls processes of several
///   user namespaces neighbours, which may read neither each other's segments nor memory. The same holds of
///   processes of several PID namespaces, whose ids it does not find, so that it takes them for dead. Here
///   the network,
///   IPC, PID and user namespaces are part of the host.
/// - `ucp_ep_err_pending_purge` drops what waits to be sent on an endpoint that fails, is closed or goes with
///   its worker. Before 1.14, UCX aborts the process ("ucp_request.c:684") if that is its own reply to a
///   process that connects, which waits while the connection is made or its socket is full. Here such a reply
///   is dropped as UCX 1.14 does it.
/// - `ucm_set_event_handler` and `ucm_unset_event_handler` make a registration cache hear what is unmapped.
///   UCX hooks mmap and its kin as soon as it is loaded. A hooked call holds a lock for reading, which these
///   two take for writing; in 1.18 some calls never release it, and the two wait for ever. Within
///   memory_events_left_out they do nothing.
///
/// Throws std::runtime_error unless UCX in this process calls the replacements.
void check_ucx_overrides();

/// While one lives, contexts that its thread makes or destroys register no handler of memory events. Their
/// registration caches do not hear of memory that is unmapped: they must register none, as those for TCP.
class memory_events_left_out {
 public:
  memory_events_left_out();
  ~memory_events_left_out();
  memory_events_left_out(const memory_events_left_out&) = delete;
  memory_events_left_out& operator=(const memory_events_left_out&) = delete;
};

}  // namespace troupe::ucx
