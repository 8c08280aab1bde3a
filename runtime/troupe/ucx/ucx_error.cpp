#include "troupe/ucx/ucx_error.hpp"

#include <ucs/type/status.h>

#include <string>

#include "troupe/error/function_name.hpp"

namespace troupe::ucx {

ucx_error::ucx_error(std::string_view action, int status, std::source_location where)
    : std::runtime_error(std::string(action) + ": " + ucs_status_string(static_cast<ucs_status_t>(status)) +
                         " (in " + short_function_name(where) + ")"),
      status_(status) {}

}  // namespace troupe::ucx
