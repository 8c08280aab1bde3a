#pragma once

namespace troupe {

/// Enables direct access of GPU `from` to the memory of GPU `to`, if the machine supports it; otherwise
/// copies between them go through CPU memory. Acts at the first call for a pair, and creates contexts on both
/// GPUs. Thread-safe. Throws cuda_error.
void enable_peer_access(int from, int to);

}  // namespace troupe
