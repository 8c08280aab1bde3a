#include "troupe/transport/ucx_error.hpp"

#include <ucs/type/status.h>

#include <string>

namespace troupe {

ucx_error::ucx_error(std::string_view action, int status, std::source_location where)
    : std::runtime_error(std::string(action) + ": " + ucs_status_string(static_cast<ucs_status_t>(status)) +
                         " (" + where.function_name() + ")"),
      status_(status) {}

}  // namespace troupe
