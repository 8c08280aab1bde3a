#pragma once
#include <stdexcept>

namespace troupe {

/// A snapshot that cannot be written or read; names file, reason and what to do.
class snapshot_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace troupe
