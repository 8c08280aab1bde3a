// Devices, their properties and the access to each other's memory.
#include <cuda.h>

#include <cstring>

#include "machine.hpp"

using troupe::emulation::call;
using troupe::emulation::context_need;
using troupe::emulation::current_gpu;
using troupe::emulation::machine;
using troupe::emulation::set_current_gpu;
using troupe::emulation::the_machine;

namespace {

bool is_there(int gpu) { return gpu >= 0 && gpu < static_cast<int>(the_machine().gpus.size()); }

/// cuDevicePrimaryCtxGetState of the driver, which says whether a GPU has a context and makes none.
CUresult primary_context_state(CUdevice gpu, unsigned* flags, int* is_active) {
  auto& all = the_machine();
  std::lock_guard lock(all.mutex);
  if (!is_there(gpu)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *is_active = all.gpus[static_cast<std::size_t>(gpu)].has_context;
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
  return call(__func__, context_need::none, [=] {
    *version = the_machine().gpus.empty() ? 0 : CUDART_VERSION;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceCount(int* count) {
  return call(__func__, context_need::none, [=] {
    *count = static_cast<int>(the_machine().gpus.size());
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
  });
}

cudaError_t cudaGetDevice(int* gpu) {
  return call(__func__, context_need::none, [=] {
    *gpu = current_gpu();
    return cudaSuccess;
  });
}

// Since CUDA 12 this makes the context.
cudaError_t cudaSetDevice(int gpu) {
  return call(__func__, context_need::none, [=] {
    if (!is_there(gpu)) return cudaErrorInvalidDevice;
    auto& all = the_machine();
    std::lock_guard lock(all.mutex);
    set_current_gpu(gpu);
    all.gpus[static_cast<std::size_t>(gpu)].has_context = true;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int gpu) {
  return call(__func__, context_need::none, [=] {
    if (!is_there(gpu)) return cudaErrorInvalidDevice;
    std::memset(properties, 0, sizeof *properties);
    std::strcpy(properties->name, "Emulated GPU");
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* possible, int gpu, int peer) {
  return call(__func__, context_need::none, [=] {
    if (!is_there(gpu) || !is_there(peer)) return cudaErrorInvalidDevice;
    *possible = gpu != peer && the_machine().is_peer_access_possible;
    return cudaSuccess;
  });
}

// Makes a context on the peer too.
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return call(__func__, [=] {
    auto& all = the_machine();
    std::lock_guard lock(all.mutex);
    if (!is_there(peer) || peer == current_gpu()) return cudaErrorInvalidDevice;
    if (flags != 0) return cudaErrorInvalidValue;
    if (!all.is_peer_access_possible) return cudaErrorPeerAccessUnsupported;
    auto access = all.gpus[static_cast<std::size_t>(current_gpu())].peers[static_cast<std::size_t>(peer)];
    if (access) return cudaErrorPeerAccessAlreadyEnabled;
    access = true;
    all.gpus[static_cast<std::size_t>(peer)].has_context = true;
    return cudaSuccess;
  });
}

// A block of an H100 or H200 may ask for 227 KiB of shared memory.
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute attribute, int value) {
  return call(__func__, [=] {
    constexpr int most_shared_memory = 227 << 10;
    auto is_known = attribute == cudaFuncAttributeMaxDynamicSharedMemorySize;
    return is_known && value >= 0 && value <= most_shared_memory ? cudaSuccess : cudaErrorInvalidValue;
  });
}

// The function that looks up functions of the driver has another name since CUDA 12.5.
#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
#else
cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* result) {
#endif
  return call(__func__, context_need::none, [=] {
    auto is_known = std::strcmp(name, "cuDevicePrimaryCtxGetState") == 0;
    *function = is_known ? reinterpret_cast<void*>(primary_context_state) : nullptr;
    if (result) *result = is_known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
  });
}
}
