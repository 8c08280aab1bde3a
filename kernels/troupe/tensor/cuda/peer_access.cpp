#include "troupe/tensor/cuda/peer_access.hpp"

#include <cuda_runtime_api.h>

#include <mutex>
#include <set>
#include <utility>

#include "troupe/tensor/cuda/cuda_error.hpp"
#include "troupe/tensor/cuda/gpu_scope.hpp"

namespace troupe {
namespace {

/// Whether the error can be ignored: access is already enabled, or the GPUs do not support it.
bool is_expected(cudaError_t status) {
  return status == cudaErrorPeerAccessAlreadyEnabled || status == cudaErrorPeerAccessUnsupported ||
         status == cudaErrorTooManyPeers;
}

void enable(int from, int to) {
  gpu_scope scope(from);
  int is_possible = 0;
  check(cudaDeviceCanAccessPeer(&is_possible, from, to));
  if (!is_possible) return;
  auto status = cudaDeviceEnablePeerAccess(to, 0);
  if (!is_expected(status)) return check(status);
  cudaGetLastError();
}

struct known_pairs {
  std::mutex mutex;
  std::set<std::pair<int, int>> pairs;
};

}  // namespace

void enable_peer_access(int from, int to) {
  // Never destroyed: destructors of static objects may copy.
  static auto* known = new known_pairs;
  std::lock_guard lock(known->mutex);
  if (known->pairs.contains({from, to})) return;
  enable(from, to);
  known->pairs.emplace(from, to);
}

}  // namespace troupe
