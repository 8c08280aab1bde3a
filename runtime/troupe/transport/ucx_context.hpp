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

/// A context for active messages and sleeping, over the given UCX transports ("tcp", "sysv,cma,tcp") and
/// network interface. Whatever matters is set here and not taken from the environment. Throws ucx_error.
ucx_context make_ucx_context(const std::string& transports, const std::string& interface);

}  // namespace troupe
