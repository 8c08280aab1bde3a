#pragma once
#include <stdexcept>

namespace troupe::files {

/// A snapshot that cannot be written or read; names file, reason and what to do.
class snapshot_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The disk is full, or this user's quota is used up: deleting files helps.
class disk_full : public snapshot_error {
 public:
  using snapshot_error::snapshot_error;
};

}  // namespace troupe::files
