#pragma once
#include <nccl.h>

#include <source_location>
#include <stdexcept>
#include <string>

#include "troupe/error/function_name.hpp"

namespace troupe::collective {

/// The NCCL functions that are used. The library is loaded when the first group is made, so a program runs
/// without NCCL until then.
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

/// An NCCL call failed. what() has NCCL's text and the calling function.
class nccl_error : public std::runtime_error {
 public:
  explicit nccl_error(const std::string& message, ncclResult_t status = ncclInternalError)
      : std::runtime_error(message), status_(status) {}
  /// Whether the cause may be another member: its process has ended, or the network to it has failed.
  bool may_be_of_others() const { return status_ == ncclRemoteError || status_ == ncclSystemError; }

 private:
  ncclResult_t status_;
};

/// Throws nccl_error unless the call has succeeded or is in progress.
inline void check(ncclResult_t status, const std::source_location& where = std::source_location::current()) {
  if (status == ncclSuccess || status == ncclInProgress) return;
  throw nccl_error(
      std::string("NCCL: ") + nccl().get_error_string(status) + " (in " + short_function_name(where) + ')',
      status);
}

}  // namespace troupe::collective
