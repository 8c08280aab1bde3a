#pragma once
#include <source_location>
#include <stdexcept>
#include <string_view>

namespace troupe::ucx {

/// UCX refused: `what` names the call, its object and UCX's own words.
class ucx_error : public std::runtime_error {
 public:
  ucx_error(std::string_view action, int status,
            std::source_location where = std::source_location::current());
  /// A ucs_status_t.
  int status() const { return status_; }

 private:
  int status_;
};

}  // namespace troupe::ucx
