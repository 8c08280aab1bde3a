#pragma once
#include "troupe/transport/transport.hpp"

namespace troupe::transport {

/// The transport of a job that is one process: every message is for this process and is handed over on the
/// caller's thread. `events` must outlive it.
std::unique_ptr<transport> make_loopback_transport(transport_events& events);

}  // namespace troupe::transport
