#pragma once
#include <memory>

#include "troupe/collective/backend.hpp"
#include "troupe/collective/ucx/network_context.hpp"
#include "troupe/collective/ucx/rendezvous.hpp"

namespace troupe {

/// Members on several hosts, who exchange messages over the network. Returns when all are connected to all.
/// Throws what rendezvous throws, and collective_error (transport) if members cannot reach each other.
/// `over` outlives it.
std::unique_ptr<collective_backend> make_network_backend(rendezvous& at, network_context& over);

}  // namespace troupe
