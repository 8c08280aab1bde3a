#pragma once
#include "troupe/collective/ucx/rendezvous.hpp"
#include "troupe/collective/ucx/ucx_exchange.hpp"

namespace troupe {

/// Returns when all members have heard of all over `interface`. Throws what rendezvous throws, and
/// collective_error (transport) that says who cannot reach whom.
void connect_members(ucx_exchange& own, rendezvous& at, const std::string& interface);

}  // namespace troupe
