// On which GPUs a process has contexts, and how one GPU's memory gets to another. Of six emulated GPUs
// the cases leave GPU 0 alone.
#include <cuda_runtime_api.h>

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/bits.hpp"
#include "support/cuda_emulation/runtime/gpus.hpp"
#include "troupe/tensor/captured_step.hpp"
#include "troupe/tensor/devices.hpp"
#include "troupe/tensor/memory.hpp"
#include "troupe/tensor/tensor.hpp"

namespace emulation = troupe::emulation;
using troupe::device;
using troupe::dtype;
using troupe::tensor;
using troupe::testing::same_bits;

namespace {

device gpu(int index) {
  emulation::set_num_gpus(6);
  return {device::kind::cuda, index};
}

tensor numbers() { return tensor::from(std::vector<std::int32_t>{3, 1, 4, 1, 5, 9, 2, 6}, {8}); }

}  // namespace

TEST_CASE("tensors on cuda:1 alone make no context on cuda:0") {
  auto there = numbers().to(gpu(1));
  auto copy = there.clone();
  copy.fill_zero();
  CHECK(same_bits(there, numbers()));
  troupe::synchronize(gpu(1));
  there = copy = {};
  troupe::release_cached_memory(gpu(1));
  CHECK(emulation::has_context(1));
  CHECK_FALSE(emulation::has_context(0));
}

TEST_CASE("each thread uses cuda:1 without making a context on cuda:0") {
  auto target = gpu(1);
  auto there = numbers().to(target);
  std::jthread([&] { troupe::synchronize(target); }).join();
  std::jthread([&] { there.fill_zero(); }).join();
  std::jthread([&] { there = {}; }).join();
  std::jthread([&] { troupe::release_cached_memory(target); }).join();
  CHECK_FALSE(emulation::has_context(0));
}

TEST_CASE(
    "recorded steps on cuda:1 make no context on cuda:0, completed or not, on whichever thread they are "
    "destroyed") {
  auto target = gpu(1);
  auto there = numbers().to(target), here = numbers();
  auto record = [&](bool fails) {
    troupe::captured_step step(target, [&, runs = 0]() mutable {
      there.copy_from(here);
      if (fails && ++runs == 2) throw std::runtime_error("no more");
    });
    step.run();
    if (fails) CHECK_THROWS_AS(step.run(), std::runtime_error);
    if (!fails) step.run();
    std::jthread([moved = std::move(step)]() mutable {}).join();
  };
  record(false);
  record(true);
  CHECK_FALSE(emulation::has_context(0));
}

TEST_CASE("the GPU that a thread used before stays its current one") {
  gpu(1);
  REQUIRE(cudaSetDevice(2) == cudaSuccess);
  auto there = numbers().to(gpu(1));
  int current = 0;
  REQUIRE(cudaGetDevice(&current) == cudaSuccess);
  CHECK(current == 2);
  CHECK_FALSE(emulation::has_context(0));
}

TEST_CASE("copies between two GPUs enable the access to each other's memory once") {
  auto there = numbers().to(gpu(1));
  auto before = emulation::num_calls("cudaDeviceEnablePeerAccess");
  for (int round = 0; round < 3; ++round) CHECK(same_bits(there.to(gpu(2)), numbers()));
  CHECK(emulation::has_peer_access(1, 2));
  CHECK(emulation::num_calls("cudaDeviceEnablePeerAccess") == before + 1);
  CHECK_FALSE(emulation::has_context(0));
}

TEST_CASE("copies between two GPUs work where these cannot reach each other's memory") {
  auto target = gpu(3);  // each pair is asked once in a process
  SECTION("because the machine does not support peer access") { emulation::set_peer_access_possible(false); }
  SECTION("because too many peer accesses are enabled") {
    target = gpu(4);
    emulation::fail_call("cudaDeviceEnablePeerAccess", cudaErrorTooManyPeers);
  }
  SECTION("because another library has enabled it already") {
    target = gpu(5);
    emulation::fail_call("cudaDeviceEnablePeerAccess", cudaErrorPeerAccessAlreadyEnabled);
  }
  CHECK(same_bits(numbers().to(gpu(1)).to(target), numbers()));
  CHECK_FALSE(emulation::has_peer_access(1, target.index));
  CHECK(cudaGetLastError() == cudaSuccess);
  emulation::set_peer_access_possible(true);
}
