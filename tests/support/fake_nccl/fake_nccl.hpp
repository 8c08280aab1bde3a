#pragma once
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

// NCCL without GPUs, for programs that list this folder's objects among their sources: what troupe::nccl()
// tells of is here. Communicators are of threads of one process, whose GPUs are the fake CUDA runtime's
// (support/cuda_emulation), and carry out their calls in their streams. Like NCCL's, a communicator that does
// not block works on its own thread: what it was asked for is in the stream once its state is ncclSuccess.
//
// What tests ask of it and tell it; thread-safe.
namespace troupe::fake_nccl {

/// One call of a function of NCCL.
struct recorded_call {
  std::string_view name;  ///< "ncclAllReduce"
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
  int group_depth = 0;  ///< the number of groups that the thread has open
  std::thread::id thread;
  int gpu = 0;  ///< the thread's current one
};

/// Forgets calls, problems and what was asked for; communicators stay.
void reset();

/// Those of one function, or of all but ncclGetErrorString and ncclCommGetAsyncError, which are not kept.
std::vector<recorded_call> calls(std::string_view name = {});
/// What NCCL forbids, or would never come back from: a communicator used while it is in progress or after it
/// has ended, calls on a thread whose current GPU is another one, an abort of one communicator while calls of
/// another one on its GPU wait for members.
std::vector<std::string> problems();
/// Communicators that were neither destroyed nor aborted.
std::size_t num_live_communicators();
/// Groups that the thread has open.
int group_depth();

/// The call after `calls_before` more calls of a function does nothing and answers `status`.
void fail_call(std::string_view name, ncclResult_t status, int calls_before = 0);
/// Whatever a communicator is asked for it answers ncclInProgress, and then so many times more when it is
/// asked for its state. 0 at first.
void set_num_in_progress(int answers);
/// Communicators that begin from now on never come to know their members, or no longer do not.
void set_never_ready(bool is_never_ready);
/// ncclCommFinalize never comes to an end, or does again.
void set_never_finalized(bool is_never_finalized);
/// From now on the state of all communicators that live is `status`.
void fail_communicators(ncclResult_t status);

}  // namespace troupe::fake_nccl
