#pragma once

namespace troupe {

/// Lets GPU `from` reach the memory of GPU `to` by itself where the machine can do that, so that copies
/// between them do not go through the CPU's memory; they do otherwise. Once for each pair, at its first call;
/// makes contexts on both. Thread-safe. Throws cuda_error if CUDA fails.
void enable_peer_access(int from, int to);

}  // namespace troupe
