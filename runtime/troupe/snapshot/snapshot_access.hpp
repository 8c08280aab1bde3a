#pragma once
#include <cstdint>

namespace troupe {

/// Who may read snapshots: their owner alone (files 0600 in folders 0700), his group too (0640, 0750), or as
/// the process's umask has it for all its files.
enum class snapshot_access : std::uint8_t { owner, group, umask };

}  // namespace troupe
