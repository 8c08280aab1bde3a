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

namespace troupe::collective {

nccl_connection::owned_stream nccl_connection::new_stream() {
  cudaStream_t stream = nullptr;
  troupe::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return owned_stream(stream);
}

nccl_connection::owned_event nccl_connection::new_event() {
  cudaEvent_t event = nullptr;
  troupe::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return owned_event(event);
}

nccl_connection::nccl_connection(std::shared_ptr<nccl_connections> all, store& keys, nccl_endpoint end,
                                 std::chrono::milliseconds finalize_timeout)
    : all_(std::move(all)), keys_(keys), endpoint_(std::move(end)), finalize_timeout_(finalize_timeout) {
  gpu_scope scope(gpu());
  stream_ = new_stream();
  queued_ = new_event();
  end_ = new_event();
  if (member() == 0) {
    ncclUniqueId id;
    check(nccl().get_unique_id(&id));
    keys_.put(endpoint_.key, std::as_bytes(std::span(&id, 1)));
  }
  all_->add(*this);
}

nccl_connection::~nccl_connection() {
  gpu_scope scope(gpu(), std::nothrow);
  if (!finalize())
    all_->abort({this}, {collective_failure::cancelled, {}, 0, {}, "a group ended before its communicators"});
  all_->remove(*this);
  end_ = nullptr;  // while the GPU is current
  queued_ = nullptr;
  stream_ = nullptr;
}

bool nccl_connection::begin_finalizing() noexcept {
  auto lock = all_->lock();
  if (state() != ncclSuccess) return false;
  auto begun = nccl().finalize(communicator_);
  return begun == ncclSuccess || begun == ncclInProgress;
}

/// Whether there is nothing to abort: NCCL has finalised and destroyed the communicator, or there was none.
bool nccl_connection::finalize() noexcept {
  if (auto lock = all_->lock(); !communicator_) return true;
  if (!begin_finalizing()) return false;
  auto deadline = std::chrono::steady_clock::now() + finalize_timeout_;
  while (locked_state() == ncclInProgress && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  if (locked_state() != ncclSuccess) return false;
  nccl().destroy(release());  // without the lock, since it may wait for calls that others have to abort
  return true;
}

ncclResult_t nccl_connection::state() const {
  auto its = ncclSuccess;
  auto asked = nccl().get_async_error(communicator_, &its);
  return asked == ncclSuccess ? its : asked;
}

ncclResult_t nccl_connection::locked_state() const {
  auto lock = all_->lock();
  return state();
}

void nccl_connection::require_not_aborted() const {
  if (aborted_with_) throw aborted_with_another(*aborted_with_);
  if (is_aborted_) throw nccl_error("NCCL: the communicator was aborted");
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

bool nccl_connection::is_accepted() const {
  require_not_aborted();
  auto its = state();
  check(its);
  return its == ncclSuccess;
}

bool nccl_connection::is_ready() {
  gpu_scope scope(gpu());
  if (auto lock = all_->lock(); communicator_ || is_aborted_) return is_accepted();
  auto id = find_id();  // without the lock: it may wait
  if (!id) return false;
  auto lock = all_->lock();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  check(nccl().init(&communicator_, num_members(), *id, member(), &config));
  return is_accepted();
}

void nccl_connection::issue(const std::function<void()>& call) {
  gpu_scope scope(gpu());
  auto lock = all_->lock();
  require_not_aborted();
  troupe::check(cudaEventRecord(queued_.get(), stream_of(all_->device())));
  troupe::check(cudaStreamWaitEvent(stream(), queued_.get(), 0));
  is_in_flight_ = true;
  is_end_marked_ = false;
  call();
}

bool nccl_connection::is_issued() {
  auto lock = all_->lock();
  return is_accepted();
}

void nccl_connection::mark_end() {
  gpu_scope scope(gpu());
  auto lock = all_->lock();
  troupe::check(cudaEventRecord(end_.get(), stream()));
  is_end_marked_ = true;
}

bool nccl_connection::has_ended() {
  gpu_scope scope(gpu());
  auto reached = cudaEventQuery(end_.get());
  if (reached == cudaErrorNotReady)
    cudaGetLastError();  // not an error, but it would stay the last error of this thread
  else
    troupe::check(reached);
  auto lock = all_->lock();
  bool is_over = is_accepted() && reached == cudaSuccess;  // throws NCCL's errors first
  if (is_over) is_in_flight_ = false;
  return is_over;
}

// Marks the end of the call itself: the owner of the call may be the aborting thread, which marks no end
// meanwhile.
bool nccl_connection::has_work_in_flight() {
  if (!is_in_flight_ || !communicator_) return false;
  if (state() != ncclSuccess) return true;
  if (!is_end_marked_) {
    cudaEventRecord(end_.get(), stream());
    is_end_marked_ = true;
  }
  auto reached = cudaEventQuery(end_.get());
  cudaGetLastError();
  return reached != cudaSuccess;
}

void nccl_connection::set_aborted(std::optional<collective_error> why) {
  if (!std::exchange(is_aborted_, true)) aborted_with_ = std::move(why);
}

}  // namespace troupe::collective
