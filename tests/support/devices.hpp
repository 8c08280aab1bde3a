#pragma once
#include <catch2/catch_test_macros.hpp>
#include <catch2/catch_tostring.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <vector>

#include "troupe/tensor/devices.hpp"
#include "troupe/tensor/tensor.hpp"

template <>
struct Catch::StringMaker<troupe::device> {
  static std::string convert(const troupe::device& where) { return to_string(where); }
};

namespace troupe::testing {

/// All GPUs of this machine.
inline std::vector<device> gpus_here() {
  std::vector<device> found;
  for (int index = 0; index < num_cuda_devices(); ++index) found.push_back({device::kind::cuda, index});
  return found;
}

/// The CPU and all GPUs of this machine: `auto where = GENERATE(from_range(devices_here()));`
inline std::vector<device> devices_here() {
  auto found = gpus_here();
  found.insert(found.begin(), device{});
  return found;
}

/// cuda:0. Skips the test if there is none.
inline device first_gpu() {
  if (num_cuda_devices() == 0) SKIP("no GPU here");
  return {device::kind::cuda, 0};
}

/// The device that this program tests: the CPU (support/on_cpu.cpp) or the first GPU (support/on_gpu.cpp).
/// Skips the test if there is no GPU.
device device_under_test();

/// `value` in the memory of the device that this program tests.
inline tensor placed(const tensor& value) { return value.to(device_under_test()); }

}  // namespace troupe::testing
