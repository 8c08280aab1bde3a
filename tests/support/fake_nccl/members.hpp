#pragma once
#include <nccl.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/fake_nccl/fake_nccl.hpp"
#include "support/fake_nccl/launch.hpp"
#include "support/fake_nccl/processes.hpp"

namespace troupe::fake_nccl {

/// The launches with the same number of all members of one unique id.
struct shared_launch {
  std::vector<std::optional<launch>> by_member;
  bool is_done = false;
};

/// The members of one unique id.
struct clique {
  std::vector<ncclComm_t> members;  ///< null: has not joined, or is in another process
  std::map<std::uint64_t, shared_launch> launches;
};

struct waiting_launch {
  launch calls;
  cudaStream_t stream = nullptr;
};

struct planned_failure {
  std::string name;
  ncclResult_t status;
  int calls_before;
};

/// The whole state of the fake library. Every access holds `mutex`.
struct library {
  std::mutex mutex;
  std::vector<std::unique_ptr<ncclComm>> communicators;  ///< all, also those that have ended
  std::map<std::string, std::shared_ptr<clique>> cliques;
  std::vector<recorded_call> calls;
  std::vector<std::string> problems;
  std::vector<planned_failure> failures;
  int num_in_progress = 0;
  std::uint64_t num_ids = 0;
  bool is_never_ready = false, is_never_finalized = false;
};
library& the_library();

}  // namespace troupe::fake_nccl

/// A communicator of one member. NCCL's header leaves it to the library.
struct ncclComm {
  std::shared_ptr<troupe::fake_nccl::clique> of;
  std::optional<troupe::fake_nccl::file_exchange> others;  ///< none: all members are in this process
  int rank = 0, gpu = 0;
  bool is_never_ready = false;
  bool is_finalizing = false, is_ended = false, is_aborted = false;
  int num_in_progress = 0;  ///< how often it still answers ncclInProgress
  ncclResult_t failure = ncclSuccess;
  std::optional<troupe::fake_nccl::waiting_launch> waiting;  ///< not in the stream yet
  std::uint64_t num_launched = 0;
  std::uint64_t num_done = 0;  ///< of these, executed in its stream
};

namespace troupe::fake_nccl {

/// The state that ncclCommGetAsyncError returns.
ncclResult_t state_of(const ncclComm& which);
/// Counts down one answer of ncclInProgress; after the last one the pending launch is put into the stream.
void advance(ncclComm& which);
/// Gives a communicator a launch.
void begin(ncclComm& which, waiting_launch launched);
/// Ends communicators at once, with their work in streams.
void abort(const std::vector<ncclComm_t>& together);

}  // namespace troupe::fake_nccl
