#pragma once
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

// NCCL without GPUs, for programs that list this folder's objects among their sources:
// troupe::collective::nccl() returns the functions of this folder. The members of a communicator are threads
// of one process, on GPUs of the fake CUDA runtime (support/cuda_emulation), and execute calls in their
// streams. With TROUPE_FAKE_NCCL_FOLDER in the environment they may be in several processes (processes.hpp).
// As in NCCL, a nonblocking communicator works on its own thread: a call is in the stream once the
// communicator's state is ncclSuccess.
//
// This header is the interface for tests; thread-safe.
namespace troupe::fake_nccl {

/// One call of a function of NCCL.
struct recorded_call {
  std::string_view name;  ///< "ncclAllReduce"
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
  int group_depth = 0;  ///< the number of groups that the thread has open
  std::thread::id thread;
  int gpu = 0;  ///< current GPU of the calling thread
};

/// Clears recorded calls, problems and settings; communicators stay.
void reset();

/// The calls of one function, or of all. Calls of ncclGetErrorString and ncclCommGetAsyncError are not
/// recorded.
std::vector<recorded_call> calls(std::string_view name = {});
/// Uses that NCCL forbids or that would hang:
/// - a communicator used while it is in progress or after it has ended
/// - calls on a thread whose current GPU is another one
/// - an abort of one communicator while calls of another one on its GPU wait for members
std::vector<std::string> problems();
/// Communicators that were neither destroyed nor aborted.
std::size_t num_live_communicators();
/// The number of groups that the thread has open.
int group_depth();

/// The call after `calls_before` more calls of a function does nothing and returns `status`.
void fail_call(std::string_view name, ncclResult_t status, int calls_before = 0);
/// Each call of a communicator returns ncclInProgress, and so do the next `answers` queries of its state. 0
/// by default.
void set_num_in_progress(int answers);
/// Whether new communicators never finish connecting to their members.
void set_never_ready(bool is_never_ready);
/// Whether ncclCommFinalize never completes.
void set_never_finalized(bool is_never_finalized);
/// Sets the state of all live communicators to `status`.
void fail_communicators(ncclResult_t status);

}  // namespace troupe::fake_nccl
