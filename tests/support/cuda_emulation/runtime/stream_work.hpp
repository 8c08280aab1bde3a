#pragma once
#include <cuda_runtime_api.h>

#include <functional>

namespace troupe::emulation {

/// Queues `work` in a stream of the fake CUDA runtime, as a kernel's launch does, or adds it to the graph
/// that the stream captures. It runs at the latest moment, in the stream's order, on the thread that waits
/// for it; in a graph, once for each launch. Aborts if the stream belongs to another GPU than this thread's
/// current one, which a launch is not allowed to. While `work` runs no lock of the runtime is held.
void enqueue(cudaStream_t stream, std::function<void()> work);

/// The same for work that waits for work of other streams, such as a collective operation. `attempt` returns
/// whether it is done; until then it is called repeatedly, and the other streams of all GPUs run in between.
/// It must not block.
void enqueue_attempts(cudaStream_t stream, std::function<bool()> attempt);

/// The GPU that a stream belongs to.
int gpu_of(cudaStream_t stream);

}  // namespace troupe::emulation
