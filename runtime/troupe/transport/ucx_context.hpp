#pragma once
#include <ucp/api/ucp.h>

#include <memory>
#include <source_location>
#include <string>
#include <string_view>

namespace troupe {

struct ucx_context_deleter {
  void operator()(ucp_context_h context) const { ucp_cleanup(context); }
};
using ucx_context = std::unique_ptr<ucp_context, ucx_context_deleter>;

/// Throws ucx_error if `status` is an error.
void check_ucx(ucs_status_t status, std::string_view action,
               std::source_location where = std::source_location::current());

/// How large messages get from one process to another.
enum class large_messages {
  /// The receiver reads the sender's memory and nobody writes into another process: one that was stopped and
  /// wakes after its peers went on can then spoil only what it received itself.
  are_fetched,
  /// The sender writes to where the receiver says. For TCP, where the receiver's own worker puts the bytes
  /// there:
  /// fewer copies, and no writes when that worker has ended.
  are_written
};

/// A context for active messages and sleeping, over the given UCX transports ("tcp", "sysv,cma,tcp") and
/// network interface. Whatever matters is set here and not taken from the environment. Throws ucx_error.
ucx_context make_ucx_context(const std::string& transports, const std::string& interface,
                             large_messages large = large_messages::are_fetched);

}  // namespace troupe
