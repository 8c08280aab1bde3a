#include "troupe/collective/libraries/nccl/nccl_connection.hpp"

#include <cstring>
#include <span>
#include <thread>
#include <utility>

#include "troupe/tensor/cuda/cuda_error.hpp"
#include "troupe/tensor/cuda/gpu.hpp"

// A non-blocking communicator returns ncclInProgress for what NCCL continues on its own thread. Until its
// state is ncclSuccess again it accepts no call but abort: other calls fail, and ncclCommDestroy would also
// leave the group of this thread open.

namespace troupe {

nccl_connection::owned_stream nccl_connection::new_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return owned_stream(stream);
}

nccl_connection::owned_event nccl_connection::new_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return owned_event(event);
}

nccl_connection::nccl_connection(device gpu, store& keys, nccl_endpoint end,
                                 std::chrono::milliseconds finalize_timeout)
    : gpu_(gpu), keys_(keys), endpoint_(std::move(end)), finalize_timeout_(finalize_timeout) {
  gpu_scope scope(gpu_.index);
  stream_ = new_stream();
  queued_ = new_event();
  end_ = new_event();
  if (member() != 0) return;
  ncclUniqueId id;
  check(nccl().get_unique_id(&id));
  keys_.put(endpoint_.key, std::as_bytes(std::span(&id, 1)));
}

nccl_connection::~nccl_connection() {
  gpu_scope scope(gpu_.index, std::nothrow);
  if (communicator_ && !finalize()) abort({this});
  end_ = nullptr;  // while the GPU is current
  queued_ = nullptr;
  stream_ = nullptr;
}

/// Whether NCCL has finalised and destroyed the communicator; otherwise it has to be aborted.
bool nccl_connection::finalize() noexcept {
  if (state() != ncclSuccess) return false;
  auto begun = nccl().finalize(communicator_);
  if (begun != ncclSuccess && begun != ncclInProgress) return false;
  auto deadline = std::chrono::steady_clock::now() + finalize_timeout_;
  while (state() == ncclInProgress && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  if (state() != ncclSuccess) return false;
  nccl().destroy(std::exchange(communicator_, nullptr));
  return true;
}

ncclResult_t nccl_connection::state() const {
  auto its = ncclSuccess;
  auto asked = nccl().get_async_error(communicator_, &its);
  return asked == ncclSuccess ? its : asked;
}

std::optional<ncclUniqueId> nccl_connection::find_id() {
  auto bytes = keys_.get(endpoint_.key, std::chrono::milliseconds(1));
  if (!bytes) return std::nullopt;
  ncclUniqueId id;
  if (bytes->size() != sizeof id)
    throw nccl_error("NCCL: expected a unique id of " + std::to_string(sizeof id) + " bytes under " +
                     endpoint_.key + ", got " + std::to_string(bytes->size()));
  std::memcpy(&id, bytes->data(), sizeof id);
  return id;
}

bool nccl_connection::is_ready() {
  if (is_aborted_) throw nccl_error("NCCL: the communicator was aborted");
  gpu_scope scope(gpu_.index);
  if (!communicator_) {
    auto id = find_id();
    if (!id) return false;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    check(nccl().init(&communicator_, num_members(), *id, member(), &config));
  }
  return is_issued();
}

bool nccl_connection::is_issued() {
  auto its = state();
  check(its);
  return its == ncclSuccess;
}

void nccl_connection::wait_for_queued_work() {
  gpu_scope scope(gpu_.index);
  check(cudaEventRecord(queued_.get(), stream_of(gpu_)));
  check(cudaStreamWaitEvent(stream(), queued_.get(), 0));
}

void nccl_connection::mark_end() {
  gpu_scope scope(gpu_.index);
  check(cudaEventRecord(end_.get(), stream()));
}

bool nccl_connection::has_ended() {
  gpu_scope scope(gpu_.index);
  auto reached = cudaEventQuery(end_.get());
  if (reached == cudaErrorNotReady)
    cudaGetLastError();  // not an error, but it would stay the last error of this thread
  else
    check(reached);
  return is_issued() && reached == cudaSuccess;  // throws NCCL's errors first
}

void nccl_connection::abort(std::vector<nccl_connection*> connections) noexcept {
  for (auto* each : connections) each->is_aborted_ = true;
  std::erase_if(connections, [](const auto* each) { return each->communicator_ == nullptr; });
  if (connections.empty()) return;
  gpu_scope scope(connections.front()->gpu_.index, std::nothrow);
  nccl().group_start();
  for (auto* each : connections) nccl().abort(std::exchange(each->communicator_, nullptr));
  nccl().group_end();
  for (auto* each : connections) cudaStreamSynchronize(each->stream());
}

}  // namespace troupe
