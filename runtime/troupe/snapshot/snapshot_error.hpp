#pragma once
#include <stdexcept>

namespace troupe {

/// A snapshot that cannot be written or read; names file, reason and what to do.
class snapshot_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The disk, or this user's share of it, has no room: less on it helps.
class disk_full : public snapshot_error {
 public:
  using snapshot_error::snapshot_error;
};

}  // namespace troupe
