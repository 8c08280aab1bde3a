#include "troupe/collective/nccl/nccl_connection.hpp"

#include <cstring>
#include <span>
#include <thread>

#include "troupe/tensor/cuda/cuda_error.hpp"
#include "troupe/tensor/cuda/gpu.hpp"

namespace troupe {

nccl_connection::nccl_connection(device gpu, store& place, std::string key, int num_members, int member)
    : gpu_(gpu), place_(place), key_(std::move(key)), num_members_(num_members), member_(member) {
  gpu_scope scope(gpu_.index);
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  check(cudaEventCreateWithFlags(&queued_, cudaEventDisableTiming));
  check(cudaEventCreateWithFlags(&end_, cudaEventDisableTiming));
  if (member_ != 0) return;
  ncclUniqueId id;
  check(nccl().get_unique_id(&id));
  place_.put(key_, std::as_bytes(std::span(&id, 1)));
}

nccl_connection::~nccl_connection() {
  gpu_scope scope(gpu_.index);
  if (communicator_ && !is_aborted_) {
    nccl().finalize(communicator_);
    auto state = ncclInProgress;
    while (nccl().get_async_error(communicator_, &state) == ncclSuccess && state == ncclInProgress)
      std::this_thread::yield();
    nccl().destroy(communicator_);
  }
  cudaEventDestroy(end_);
  cudaEventDestroy(queued_);
  cudaStreamDestroy(stream_);
}

std::optional<ncclUniqueId> nccl_connection::find_id() {
  auto bytes = place_.get(key_, std::chrono::milliseconds(1));
  if (!bytes) return std::nullopt;
  ncclUniqueId id;
  std::memcpy(&id, bytes->data(), sizeof id);
  return id;
}

bool nccl_connection::is_ready() {
  if (!communicator_) {
    auto id = find_id();
    if (!id) return false;
    gpu_scope scope(gpu_.index);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    check(nccl().init(&communicator_, num_members_, *id, member_, &config));
  }
  return is_issued();
}

bool nccl_connection::is_issued() {
  auto state = ncclSuccess;
  check(nccl().get_async_error(communicator_, &state));
  check(state);
  return state == ncclSuccess;
}

void nccl_connection::follow_queued_work() {
  check(cudaEventRecord(queued_, stream_of(gpu_)));
  check(cudaStreamWaitEvent(stream_, queued_));
}

void nccl_connection::mark_end() { check(cudaEventRecord(end_, stream_)); }

bool nccl_connection::has_ended() {
  auto state = cudaEventQuery(end_);
  if (state == cudaErrorNotReady) {
    is_issued();  // throws NCCL's own errors meanwhile
    return false;
  }
  check(state);
  return true;
}

void nccl_connection::abort() noexcept {
  if (is_aborted_) return;
  is_aborted_ = true;
  if (communicator_) nccl().abort(communicator_);
  cudaStreamSynchronize(stream_);
}

}  // namespace troupe
