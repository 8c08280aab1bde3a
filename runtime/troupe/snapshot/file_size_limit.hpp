#pragma once

namespace troupe {

/// From now on a write past the limit on file sizes (`ulimit -f`) fails with EFBIG, as on a full disk,
/// instead of ending the process by SIGXFSZ. A handler that the program has installed stays. For the whole
/// process.
void read_file_size_limit_as_full_disk();

}  // namespace troupe
