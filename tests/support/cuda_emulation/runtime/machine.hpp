#pragma once
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "memory_blocks.hpp"

namespace troupe::emulation {

/// Returns whether it is done. Work that only runs is done after one call.
using attempt = std::function<bool()>;
using recorded_work = std::vector<attempt>;

}  // namespace troupe::emulation

struct CUgraph_st {
  troupe::emulation::recorded_work work;
};

struct CUgraphExec_st {
  std::shared_ptr<const troupe::emulation::recorded_work> work;
  bool is_destroyed = false;
};

struct CUstream_st {
  int gpu = 0;
  std::deque<troupe::emulation::attempt> queue;
  std::uint64_t num_queued = 0, num_done = 0;
  bool is_running = false;  ///< some thread is within the first of the queue
  bool is_destroyed = false;
  std::unique_ptr<CUgraph_st> capture;  ///< null unless the stream captures
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
  bool is_capture_invalid = false;
};

struct CUevent_st {
  int gpu = 0;
  CUstream_st* stream = nullptr;  ///< null until it is recorded
  std::uint64_t ticket = 0;       ///< reached when the stream has done so many
  bool is_captured = false;       ///< recorded last in a stream that captured
  bool is_destroyed = false;
};

namespace troupe::emulation {

struct emulated_gpu {
  bool has_context = false;
  std::vector<bool> peers;  ///< whose memory it can read
};

struct planned_failure {
  std::string function;
  cudaError_t status;
  int calls_before;
};

/// All that the fake runtime knows. Handles stay after their destruction, so that a later use is recognised.
struct machine {
  std::recursive_mutex mutex;
  std::vector<emulated_gpu> gpus;
  bool is_peer_access_possible = true;
  memory_blocks blocks;
  std::vector<std::unique_ptr<CUstream_st>> streams;
  std::vector<std::unique_ptr<CUevent_st>> events;
  std::vector<std::unique_ptr<CUgraphExec_st>> executables;
  std::vector<planned_failure> failures;
  std::map<std::string, std::size_t, std::less<>> num_calls;
};

/// The process's one machine, made at first use.
machine& the_machine();

/// This thread's current GPU, as cudaGetDevice says.
int current_gpu();
void set_current_gpu(int gpu);

/// Ends the program with "fake CUDA runtime: " and the text: a use of the API whose outcome CUDA leaves open.
[[noreturn]] void refuse(const std::string& text);

enum class context_need { none, current_gpu };

/// What each function of the runtime does around its own work: it counts the call, returns a planned failure,
/// makes a context on the current GPU where one is needed, and keeps an error for cudaGetLastError.
cudaError_t call(const char* function, context_need need, const std::function<cudaError_t()>& body);
inline cudaError_t call(const char* function, const std::function<cudaError_t()>& body) {
  return call(function, context_need::current_gpu, body);
}

/// Null is the default stream, which the project does not use: refused, as a destroyed one is.
CUstream_st& checked(cudaStream_t stream);
CUevent_st& checked(cudaEvent_t event);

/// Queues in the stream, or adds to its capture. `cudaErrorStreamCaptureInvalidated` if that is invalid.
cudaError_t add_work(CUstream_st& stream, attempt work);

/// Runs the stream until it has done `ticket` operations. `lock` holds the machine's mutex once.
void run_until(std::unique_lock<std::recursive_mutex>& lock, CUstream_st& stream, std::uint64_t ticket);
/// Runs what is queued on one GPU.
void run_all(int gpu);

/// Makes one attempt at the stream's first operation, of its dependencies where it waits for one.
void advance(std::unique_lock<std::recursive_mutex>& lock, CUstream_st& stream);

}  // namespace troupe::emulation
