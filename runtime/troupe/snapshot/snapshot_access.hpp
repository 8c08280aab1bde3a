#pragma once
#include <cstdint>

namespace troupe::snapshot {

/// Who may read snapshots. owner: only their owner (files 0600 in folders 0700). group: the owner's group too
/// (0640, 0750). umask: as the process's umask allows.
enum class snapshot_access : std::uint8_t { owner, group, umask };

}  // namespace troupe::snapshot
