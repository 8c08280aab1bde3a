#pragma once
#include <map>
#include <string>

#include "troupe/process/process.hpp"
#include "troupe/transport/ucx_transport/ucx_transport.hpp"

namespace troupe::bench {

/// Of a transport of a bench's own, beside the job's: rank, size and secret.
transport::ucx_transport_options own_transport_options(const actors::process::process& self);

/// All processes of a job tell each other their addresses through its store, each with the same name once.
/// By rank. Throws std::runtime_error if one does not come within a minute.
std::map<int, transport::process_address> exchange_addresses(actors::process::process& self,
                                                             const std::string& name,
                                                             const transport::process_address& own);

}  // namespace troupe::bench
