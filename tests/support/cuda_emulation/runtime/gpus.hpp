#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

// The interface of the fake CUDA runtime for tests. All functions are thread-safe.
namespace troupe::emulation {

/// Sets the number of GPUs, which cannot change after the first call of the runtime. By default it is that of
/// the environment variable TROUPE_EMULATED_GPUS, or 1.
void set_num_gpus(int count);

/// Whether the process has a context on a GPU: whether some thread made it the current one with
/// cudaSetDevice, or called a function that needs a context while it was. A context takes hundreds of
/// megabytes of a real GPU.
bool has_context(int gpu);

/// The number of blocks from cudaMalloc that are not freed.
std::size_t num_allocations(int gpu);
/// The number of blocks from cudaHostAlloc that are not freed.
std::size_t num_pinned_allocations();
/// The number of streams, events and instantiated graphs that are not destroyed.
std::size_t num_live_handles();
/// The number of queued operations that are not done, in all streams.
std::size_t num_queued();

/// The call after `calls_before` more calls of `function`, such as "cudaMalloc", does nothing and returns
/// `status`.
void fail_call(std::string_view function, cudaError_t status, int calls_before = 0);

/// After so many more calls of any function all fail, for good, as after an error within a kernel. By default
/// the environment variable TROUPE_EMULATED_LOSS=RANK:CALLS says so, of the first process of a rank.
void lose_gpus(std::uint64_t calls_before);

/// How often a function of the runtime was called.
std::size_t num_calls(std::string_view function);

/// Sets whether GPUs can read each other's memory; by default they can.
void set_peer_access_possible(bool possible);
/// Whether `gpu` has cudaDeviceEnablePeerAccess to the memory of `peer`.
bool has_peer_access(int gpu, int peer);

}  // namespace troupe::emulation
