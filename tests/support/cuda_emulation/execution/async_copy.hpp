#pragma once
#include "support/cuda_emulation/execution/call.hpp"

namespace troupe::emulation {

/// cp.async of 16 bytes by the current thread, of which the last 16 - source_bytes become 0. Fails if an
/// address is no multiple of 16. execution_options::copies determines when it writes; until then a late copy
/// leaves unset bytes.
void begin_async_copy(const call& by, void* to, const void* from, int source_bytes);

/// cp.async.wait_all of the current thread.
void finish_async_copies();

}  // namespace troupe::emulation
