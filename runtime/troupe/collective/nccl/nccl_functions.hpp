#pragma once
#include <nccl.h>

#include <source_location>
#include <stdexcept>
#include <string>

namespace troupe {

/// NCCL's functions that are used, found when the first group is made: a program runs without NCCL until
/// then.
struct nccl_functions {
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRankConfig) init;
  decltype(&ncclCommFinalize) finalize;
  decltype(&ncclCommDestroy) destroy;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclCommGetAsyncError) get_async_error;
  decltype(&ncclGetErrorString) get_error_string;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclReduce) reduce;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclBroadcast) broadcast;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;
};

/// Throws bad_input if NCCL cannot be loaded.
const nccl_functions& nccl();

/// NCCL refused: `what` gives its words and the function of ours that called.
class nccl_error : public std::runtime_error {
 public:
  explicit nccl_error(const std::string& message, ncclResult_t status = ncclInternalError)
      : std::runtime_error(message), status_(status) {}
  /// Whether another member may be what went wrong: its process ended, or the network to it.
  bool may_be_of_others() const { return status_ == ncclRemoteError || status_ == ncclSystemError; }

 private:
  ncclResult_t status_;
};

/// A call that goes on by itself is well.
void check(ncclResult_t status, const std::source_location& where = std::source_location::current());

}  // namespace troupe
