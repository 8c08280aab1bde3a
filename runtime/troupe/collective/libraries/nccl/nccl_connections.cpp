#include "troupe/collective/libraries/nccl/nccl_connections.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "troupe/collective/libraries/nccl/nccl_connection.hpp"
#include "troupe/tensor/cuda/gpu.hpp"

namespace troupe::collective {
namespace {

bool contains(const std::vector<nccl_connection*>& some, const nccl_connection* one) {
  return std::ranges::find(some, one) != some.end();
}

}  // namespace

void nccl_connections::add(nccl_connection& one) {
  std::lock_guard lock(using_);
  all_.push_back(&one);
}

void nccl_connections::remove(nccl_connection& one) {
  std::lock_guard lock(using_);
  std::erase(all_, &one);
}

bool nccl_connections::others_have_work_in_flight(const std::vector<nccl_connection*>& failed) {
  return std::ranges::any_of(all_, [&](auto* each) {
    return !contains(failed, each) && !each->is_aborted() && each->has_work_in_flight();
  });
}

/// Releases the lock between two checks, so that the owners of these calls can continue.
void nccl_connections::wait_for_others(const std::vector<nccl_connection*>& failed,
                                       std::unique_lock<std::mutex>& lock) {
  auto deadline = std::chrono::steady_clock::now() + time_for_others_;
  while (others_have_work_in_flight(failed) && std::chrono::steady_clock::now() < deadline) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    lock.lock();
  }
}

void nccl_connections::abort(const std::vector<nccl_connection*>& failed,
                             const collective_error& why) noexcept {
  gpu_scope scope(gpu_.index, std::nothrow);
  auto held = lock();
  for (auto* each : failed) each->set_aborted(std::nullopt);
  if (std::ranges::none_of(failed, [](const auto* each) { return each->communicator() != nullptr; })) return;
  wait_for_others(failed, held);
  std::vector<nccl_connection*> aborted;
  for (auto* each : all_) {
    if (each->communicator() == nullptr || (!contains(failed, each) && !each->has_work_in_flight())) continue;
    each->set_aborted(why);
    aborted.push_back(each);
  }
  abort_together(aborted);
}

/// One NCCL group sets the abort flags of all communicators before it waits for any.
void nccl_connections::abort_together(const std::vector<nccl_connection*>& connections) noexcept {
  if (connections.empty()) return;  // another thread has aborted them
  nccl().group_start();
  for (auto* each : connections) nccl().abort(each->release());
  nccl().group_end();
  for (auto* each : connections) cudaStreamSynchronize(each->stream());
}

}  // namespace troupe::collective
