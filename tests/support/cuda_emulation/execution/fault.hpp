#pragma once
#include <string>

#include "support/cuda_emulation/execution/call.hpp"

namespace troupe::emulation {

/// Ends the process with abort() after "CUDA emulation: ..." on standard error: the kernel, the block, the
/// thread and the call. After a fault in a kernel there is no valid state in which a test could continue.
[[noreturn]] void fail(const call& at, const std::string& problem);
[[noreturn]] void fail(const std::string& problem);

/// "__syncthreads (rows.cuh:97, T reduce_block(T))"
std::string to_string(const call& of);

}  // namespace troupe::emulation
