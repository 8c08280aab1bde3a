#pragma once
#include <ucp/api/ucp.h>

#include <memory>
#include <source_location>
#include <string>
#include <string_view>

namespace troupe::ucx {

struct ucx_context_deleter {
  void operator()(ucp_context_h context) const;
};
using ucx_context = std::unique_ptr<ucp_context, ucx_context_deleter>;

/// Throws ucx_error if `status` is an error.
void check_ucx(ucs_status_t status, std::string_view action,
               std::source_location where = std::source_location::current());

/// How the elements of large messages are moved once the receiver has the header (UCX_RNDV_SCHEME).
enum class rendezvous_scheme {
  /// The receiver reads the sender's memory. No process writes into another, so a suspended process
  /// that resumes in an old generation can corrupt only its own memory.
  get,
  /// The sender writes into the receiver's memory. For TCP only, where the receiver's own worker stores the
  /// bytes: fewer copies than get, and no writes after that worker is destroyed.
  put
};

/// A context for active messages and sleeping, over the given UCX transports ("tcp", "sysv,cma,tcp") and
/// network interface. All settings that matter are set here and not taken from the environment. Throws
/// ucx_error.
ucx_context make_ucx_context(const std::string& transports, const std::string& interface,
                             rendezvous_scheme large = rendezvous_scheme::get);

}  // namespace troupe::ucx
