#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <string_view>

// What tests ask of the fake CUDA runtime and tell it. All functions are thread-safe.
namespace troupe::emulation {

/// How many GPUs there are; their number cannot change after the first call of the runtime. Without this the
/// environment variable TROUPE_EMULATED_GPUS says it, and without that there is one.
void set_num_gpus(int count);

/// Whether the process has a context on a GPU: whether some thread made it the current one with
/// cudaSetDevice, or called a function that needs a context while it was. A context takes hundreds of
/// megabytes of a real GPU.
bool has_context(int gpu);

/// From cudaMalloc, without what was freed.
std::size_t num_allocations(int gpu);
/// From cudaHostAlloc, without what was freed.
std::size_t num_pinned_allocations();
/// The number of streams, events and instantiated graphs that are not destroyed.
std::size_t num_live_handles();
/// Operations that are queued and not done, in all streams.
std::size_t num_queued();

/// The call after `calls_before` more calls of `function`, such as "cudaMalloc", does nothing and returns
/// `status`.
void fail_call(std::string_view function, cudaError_t status, int calls_before = 0);

/// How often a function of the runtime was called.
std::size_t num_calls(std::string_view function);

/// Whether GPUs can read each other's memory; they can unless told otherwise.
void set_peer_access_possible(bool possible);
/// Whether `gpu` has cudaDeviceEnablePeerAccess to the memory of `peer`.
bool has_peer_access(int gpu, int peer);

}  // namespace troupe::emulation
