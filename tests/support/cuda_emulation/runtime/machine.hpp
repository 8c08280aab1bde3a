#pragma once
#include <cuda_runtime_api.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "memory_blocks.hpp"

namespace troupe::emulation {

/// Tries to do the work and returns whether it is done. Work that need not wait is done after one call.
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
  bool is_running = false;  ///< a thread runs the first operation of the queue
  bool is_destroyed = false;
  std::unique_ptr<CUgraph_st> capture;  ///< null unless the stream captures
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
  bool is_capture_invalid = false;
};

struct CUevent_st {
  int gpu = 0;
  CUstream_st* stream = nullptr;  ///< null until it is recorded
  std::uint64_t ticket = 0;       ///< reached when the stream has done this number of operations
  bool is_captured = false;       ///< last recorded in a stream that captured
  bool is_destroyed = false;
  bool is_timed = false;
  std::shared_ptr<std::chrono::steady_clock::time_point> reached = {};  ///< when it was, if it is timed
};

namespace troupe::emulation {

struct emulated_gpu {
  bool has_context = false;
  std::vector<bool> peers;  ///< the GPUs whose memory it can read
};

/// When queued work runs: at the latest moment, at once, or whenever a number is drawn.
enum class stream_order { late, early, drawn };

struct planned_failure {
  std::string function;
  cudaError_t status;
  int calls_before;
};

/// The state of the fake runtime. Handles are kept after their destruction, so that a later use is detected.
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
  std::optional<std::uint64_t> calls_before_loss;  ///< of any function; none: the GPUs are not lost
  stream_order order = stream_order::late;
  std::minstd_rand draws;
};

/// The machine of this process, made at first use.
machine& the_machine();

/// This thread's current GPU, as cudaGetDevice returns it.
int current_gpu();
void set_current_gpu(int gpu);

/// Ends the program with "fake CUDA runtime: " and the text: a use of the API that CUDA leaves undefined.
[[noreturn]] void refuse(const std::string& text);

enum class context_need { none, current_gpu };

/// Wraps each function of the runtime: counts the call, returns a planned failure, makes a context on the
/// current GPU if one is needed, and keeps an error for cudaGetLastError.
cudaError_t call(const char* function, context_need need, const std::function<cudaError_t()>& body);
inline cudaError_t call(const char* function, const std::function<cudaError_t()>& body) {
  return call(function, context_need::current_gpu, body);
}

/// Refuses a destroyed stream and null, the default stream, which the project does not use.
CUstream_st& checked(cudaStream_t stream);
CUevent_st& checked(cudaEvent_t event);

/// Queues in the stream, or adds to its capture. `cudaErrorStreamCaptureInvalidated` if that is invalid.
cudaError_t add_work(CUstream_st& stream, attempt work);

/// Runs the stream until it has done `ticket` operations. `lock` holds the machine's mutex once.
void run_until(std::unique_lock<std::recursive_mutex>& lock, CUstream_st& stream, std::uint64_t ticket);
/// Runs all queued operations of one GPU.
void run_all(int gpu);

/// Runs what the machine's stream_order says after a call of the runtime.
void run_ahead();

/// Makes one attempt at the stream's first operation, or at those of the streams that it waits for.
void advance(std::unique_lock<std::recursive_mutex>& lock, CUstream_st& stream);

}  // namespace troupe::emulation
