#include "troupe/collective/nccl/nccl_functions.hpp"

#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/ops/cuda/shared_library.hpp"

namespace troupe {
namespace {

const std::string file_name = "libnccl.so." + std::to_string(NCCL_MAJOR);

[[noreturn]] void refuse(const char* problem) {
  throw bad_input(
      "groups of GPUs need NCCL, which cannot be loaded: " + std::string(problem ? problem : file_name) +
      "; install it, and let its folder be known to ldconfig or stand in LD_LIBRARY_PATH");
}

template <class Function>
void find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (!function) refuse(dlerror());
}

nccl_functions find_all() {
  nccl_functions all;
  auto* library = cuda::load_library(file_name, TROUPE_NCCL_LIBRARY_DIR);
  if (!library) refuse(dlerror());
  find(library, all.get_unique_id, "ncclGetUniqueId");
  find(library, all.init, "ncclCommInitRankConfig");
  find(library, all.finalize, "ncclCommFinalize");
  find(library, all.destroy, "ncclCommDestroy");
  find(library, all.abort, "ncclCommAbort");
  find(library, all.get_async_error, "ncclCommGetAsyncError");
  find(library, all.get_error_string, "ncclGetErrorString");
  find(library, all.group_start, "ncclGroupStart");
  find(library, all.group_end, "ncclGroupEnd");
  find(library, all.all_reduce, "ncclAllReduce");
  find(library, all.reduce, "ncclReduce");
  find(library, all.reduce_scatter, "ncclReduceScatter");
  find(library, all.all_gather, "ncclAllGather");
  find(library, all.broadcast, "ncclBroadcast");
  find(library, all.send, "ncclSend");
  find(library, all.receive, "ncclRecv");
  return all;
}

}  // namespace

const nccl_functions& nccl() {
  static const auto all = find_all();
  return all;
}

void check(ncclResult_t status, const std::source_location& where) {
  if (status == ncclSuccess || status == ncclInProgress) return;
  throw nccl_error(std::string("NCCL: ") + nccl().get_error_string(status) + " (in " + where.function_name() +
                   ')');
}

}  // namespace troupe
