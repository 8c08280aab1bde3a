#include "troupe/collective/libraries/nccl/nccl_functions.hpp"

#include <string>

#include "troupe/tensor/cuda/dynamic_library.hpp"

namespace troupe::collective {
namespace {

nccl_functions find_all() {
  nccl_functions all;
  dynamic_library library({.file_name = "libnccl.so." + std::to_string(NCCL_MAJOR),
                           .folder = TROUPE_NCCL_LIBRARY_DIR,
                           .need = "groups of GPUs need NCCL"});
  library.find(all.get_unique_id, "ncclGetUniqueId");
  library.find(all.init, "ncclCommInitRankConfig");
  library.find(all.finalize, "ncclCommFinalize");
  library.find(all.destroy, "ncclCommDestroy");
  library.find(all.abort, "ncclCommAbort");
  library.find(all.get_async_error, "ncclCommGetAsyncError");
  library.find(all.get_error_string, "ncclGetErrorString");
  library.find(all.group_start, "ncclGroupStart");
  library.find(all.group_end, "ncclGroupEnd");
  library.find(all.all_reduce, "ncclAllReduce");
  library.find(all.reduce, "ncclReduce");
  library.find(all.reduce_scatter, "ncclReduceScatter");
  library.find(all.all_gather, "ncclAllGather");
  library.find(all.broadcast, "ncclBroadcast");
  library.find(all.send, "ncclSend");
  library.find(all.receive, "ncclRecv");
  return all;
}

}  // namespace

const nccl_functions& nccl() {
  static const auto all = find_all();
  return all;
}

}  // namespace troupe::collective
