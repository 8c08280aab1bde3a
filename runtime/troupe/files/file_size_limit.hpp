#pragma once

namespace troupe::files {

/// Ignores SIGXFSZ in this process, so that a write past the file size limit (`ulimit -f`) fails with EFBIG
/// and is handled like a full disk. A handler that the program has installed stays.
void ignore_file_size_signal();

}  // namespace troupe::files
