#pragma once
#include <chrono>
#include <mutex>
#include <vector>

#include "troupe/collective/calls/collective_error.hpp"
#include "troupe/tensor/device.hpp"

namespace troupe::collective {

class nccl_connection;

/// The NCCL connections on one GPU of all groups of a process. ncclCommAbort of one communicator may wait for
/// all work of the GPU, including calls of other communicators, which may wait for lost members. So an abort
/// also aborts all other communicators that have work in flight, within one NCCL group. Thread-safe.
class nccl_connections {
 public:
  nccl_connections(troupe::device gpu, std::chrono::milliseconds time_for_others)
      : gpu_(gpu), time_for_others_(time_for_others) {}
  nccl_connections(const nccl_connections&) = delete;
  nccl_connections& operator=(const nccl_connections&) = delete;

  troupe::device device() const { return gpu_; }
  void add(nccl_connection& one);
  void remove(nccl_connection& one);
  /// Held while a communicator of this GPU is used, so that no other thread aborts it meanwhile.
  [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock(using_); }
  /// Aborts connections of one group, which has failed with `why`. Calls of other groups have
  /// `time_for_others` to end; then their connections are aborted too, and throw `why`. Afterwards no aborted
  /// call accesses memory.
  void abort(const std::vector<nccl_connection*>& failed, const collective_error& why) noexcept;

 private:
  bool others_have_work_in_flight(const std::vector<nccl_connection*>& failed);
  void wait_for_others(const std::vector<nccl_connection*>& failed, std::unique_lock<std::mutex>& lock);
  void abort_together(const std::vector<nccl_connection*>& connections) noexcept;

  troupe::device gpu_;
  std::chrono::milliseconds time_for_others_;
  std::mutex using_;
  std::vector<nccl_connection*> all_;
};

}  // namespace troupe::collective
