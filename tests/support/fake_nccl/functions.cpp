// The functions of NCCL that Troupe calls, and the table of them.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "support/fake_nccl/members.hpp"
#include "troupe/collective/libraries/nccl/nccl_functions.hpp"

namespace troupe::fake_nccl {
namespace {

/// The calls of a thread since its outermost ncclGroupStart.
struct open_group {
  int depth = 0;
  ncclResult_t failure = ncclSuccess;
  std::vector<std::pair<ncclComm_t, waiting_launch>> launches;
  std::vector<ncclComm_t> aborted;
};
thread_local open_group current;

int current_gpu() {
  int gpu = 0;
  cudaGetDevice(&gpu);
  return gpu;
}

void add_problem(std::string_view name, const std::string& text) {
  the_library().problems.push_back(std::string(name) + ' ' + text);
}

/// Records the call. Returns its planned status, or ncclSuccess.
ncclResult_t enter(std::string_view name, ncclComm_t communicator = nullptr, cudaStream_t stream = nullptr) {
  auto& all = the_library();
  auto gpu = current_gpu();
  all.calls.push_back({name, communicator, stream, current.depth, std::this_thread::get_id(), gpu});
  if (communicator && communicator->gpu != gpu)
    add_problem(name, "on a thread whose current GPU is " + std::to_string(gpu) +
                          ", for a communicator of GPU " + std::to_string(communicator->gpu));
  if (communicator && communicator->is_ended) add_problem(name, "for a communicator that has ended");
  auto at = std::ranges::find(all.failures, name, &planned_failure::name);
  if (at == all.failures.end() || at->calls_before-- > 0) return ncclSuccess;
  auto status = at->status;
  all.failures.erase(at);
  return status;
}

/// In a group, ncclGroupEnd returns the first failure.
ncclResult_t failed(ncclResult_t status) {
  if (current.depth > 0 && current.failure == ncclSuccess) current.failure = status;
  return status;
}

/// Refuses calls of a communicator that is in progress or has failed.
ncclResult_t require_ready(std::string_view name, ncclComm_t communicator) {
  auto state = state_of(*communicator);
  if (state != ncclInProgress) return state;
  add_problem(name, "for a communicator that is in progress");
  return ncclInvalidArgument;
}

void add_to_group(ncclComm_t communicator, cudaStream_t stream, const member_call& call) {
  auto same = [&](const auto& each) { return each.first == communicator; };
  auto at = std::ranges::find_if(current.launches, same);
  if (at == current.launches.end())
    at = current.launches.insert(at, {communicator, waiting_launch{{}, stream}});
  at->second.calls.push_back(call);
}

ncclResult_t launch_call(std::string_view name, ncclComm_t communicator, cudaStream_t stream,
                         const member_call& call) {
  std::lock_guard lock(the_library().mutex);
  auto status = enter(name, communicator, stream);
  if (status == ncclSuccess) status = require_ready(name, communicator);
  if (status != ncclSuccess) return failed(status);
  if (current.depth > 0) {
    add_to_group(communicator, stream, call);
    return ncclSuccess;
  }
  begin(*communicator, {{call}, stream});
  return state_of(*communicator);
}

const std::byte* bytes(const void* elements) { return static_cast<const std::byte*>(elements); }
std::byte* bytes(void* elements) { return static_cast<std::byte*>(elements); }

ncclResult_t get_unique_id(ncclUniqueId* id) {
  std::lock_guard lock(the_library().mutex);
  if (auto status = enter("ncclGetUniqueId"); status != ncclSuccess) return status;
  std::memset(id, 0, sizeof *id);
  // Of this process, for members in others.
  auto name = std::to_string(::getpid()) + "." + std::to_string(++the_library().num_ids);
  std::memcpy(id->internal, name.data(), name.size());
  return ncclSuccess;
}

/// Adds a member. Null if the rank is taken already.
ncclComm_t add_member(int num_members, const ncclUniqueId& id, int rank) {
  auto& all = the_library();
  auto& of = all.cliques[std::string(id.internal, sizeof id.internal)];
  if (!of)
    of = std::make_shared<clique>(clique{std::vector<ncclComm_t>(static_cast<std::size_t>(num_members)), {}});
  auto& place = of->members.at(static_cast<std::size_t>(rank));
  if (place) return nullptr;
  all.communicators.push_back(std::make_unique<ncclComm>());
  place = all.communicators.back().get();
  place->of = of;
  place->rank = rank;
  place->gpu = current_gpu();
  place->is_never_ready = all.is_never_ready;
  place->num_in_progress = all.num_in_progress;
  if (auto folder = file_exchange::folder()) place->others.emplace(*folder, id.internal, rank, num_members);
  return place;
}

ncclResult_t init(ncclComm_t* made, int num_members, ncclUniqueId id, int rank, ncclConfig_t* config) {
  std::lock_guard lock(the_library().mutex);
  *made = nullptr;
  if (auto status = enter("ncclCommInitRankConfig"); status != ncclSuccess) return status;
  if (config->blocking != 0) add_problem("ncclCommInitRankConfig", "for a communicator that blocks");
  *made = add_member(num_members, id, rank);
  return *made ? state_of(**made) : ncclInvalidUsage;
}

ncclResult_t finalize(ncclComm_t communicator) {
  std::lock_guard lock(the_library().mutex);
  auto status = enter("ncclCommFinalize", communicator);
  if (status == ncclSuccess) status = require_ready("ncclCommFinalize", communicator);
  if (status != ncclSuccess) return status;
  communicator->is_finalizing = true;
  communicator->num_in_progress = the_library().num_in_progress;
  return state_of(*communicator);
}

ncclResult_t destroy(ncclComm_t communicator) {
  std::lock_guard lock(the_library().mutex);
  auto status = enter("ncclCommDestroy", communicator);
  if (status == ncclSuccess) status = require_ready("ncclCommDestroy", communicator);
  if (status == ncclSuccess) communicator->is_ended = true;
  return status;
}

ncclResult_t abort_communicator(ncclComm_t communicator) {
  std::lock_guard lock(the_library().mutex);
  if (auto status = enter("ncclCommAbort", communicator); status != ncclSuccess) return failed(status);
  if (current.depth > 0)
    current.aborted.push_back(communicator);
  else
    abort({communicator});
  return ncclSuccess;
}

ncclResult_t get_async_error(ncclComm_t communicator, ncclResult_t* state) {
  std::lock_guard lock(the_library().mutex);
  advance(*communicator);
  *state = state_of(*communicator);
  return ncclSuccess;
}

const char* get_error_string(ncclResult_t status) {
  switch (status) {
    case ncclSystemError:
      return "unhandled system error";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    default:
      return "internal error";
  }
}

ncclResult_t group_start() {
  std::lock_guard lock(the_library().mutex);
  if (auto status = enter("ncclGroupStart"); status != ncclSuccess) return status;
  ++current.depth;
  return ncclSuccess;
}

ncclResult_t close(open_group group) {
  if (!group.aborted.empty()) abort(group.aborted);
  if (group.failure != ncclSuccess) return group.failure;
  auto status = ncclSuccess;
  for (auto& [communicator, launched] : group.launches) {
    begin(*communicator, std::move(launched));
    if (state_of(*communicator) == ncclInProgress) status = ncclInProgress;
  }
  return status;
}

ncclResult_t group_end() {
  std::lock_guard lock(the_library().mutex);
  auto status = enter("ncclGroupEnd");
  if (current.depth == 0) return ncclInvalidUsage;
  if (status != ncclSuccess) failed(status);
  if (--current.depth > 0) return ncclSuccess;
  return close(std::exchange(current, {}));
}

ncclResult_t all_reduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                        ncclComm_t communicator, cudaStream_t stream) {
  return launch_call("ncclAllReduce", communicator, stream,
                     {call_kind::all_reduce, bytes(from), bytes(to), count, type, op});
}

ncclResult_t reduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                    int root, ncclComm_t communicator, cudaStream_t stream) {
  return launch_call("ncclReduce", communicator, stream,
                     {call_kind::reduce, bytes(from), bytes(to), count, type, op, root});
}

ncclResult_t reduce_scatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                            ncclRedOp_t op, ncclComm_t communicator, cudaStream_t stream) {
  return launch_call("ncclReduceScatter", communicator, stream,
                     {call_kind::reduce_scatter, bytes(from), bytes(to), count, type, op});
}

ncclResult_t all_gather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                        ncclComm_t communicator, cudaStream_t stream) {
  return launch_call("ncclAllGather", communicator, stream,
                     {call_kind::all_gather, bytes(from), bytes(to), count, type});
}

ncclResult_t broadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                       ncclComm_t communicator, cudaStream_t stream) {
  return launch_call("ncclBroadcast", communicator, stream,
                     {call_kind::broadcast, bytes(from), bytes(to), count, type, ncclSum, root});
}

ncclResult_t send(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                  cudaStream_t stream) {
  return launch_call("ncclSend", communicator, stream,
                     {call_kind::send, bytes(from), nullptr, count, type, ncclSum, peer});
}

ncclResult_t receive(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                     cudaStream_t stream) {
  return launch_call("ncclRecv", communicator, stream,
                     {call_kind::receive, nullptr, bytes(to), count, type, ncclSum, peer});
}

}  // namespace

int group_depth() { return current.depth; }

}  // namespace troupe::fake_nccl

namespace troupe {

/// Replaces the function that loads the library.
const collective::nccl_functions& collective::nccl() {
  using namespace fake_nccl;
  static const collective::nccl_functions all{
      .get_unique_id = get_unique_id,
      .init = init,
      .finalize = finalize,
      .destroy = destroy,
      .abort = abort_communicator,
      .get_async_error = get_async_error,
      .get_error_string = get_error_string,
      .group_start = group_start,
      .group_end = group_end,
      .all_reduce = all_reduce,
      .reduce = reduce,
      .reduce_scatter = reduce_scatter,
      .all_gather = all_gather,
      .broadcast = broadcast,
      .send = send,
      .receive = receive,
  };
  return all;
}

}  // namespace troupe
