#pragma once
#include <cstdint>
#include <string>

#include "troupe/tensor/memory_account.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::program {

/// The memory of one process, in bytes.
struct process_memory_use {
  std::uint64_t allocated = 0;      ///< held by tensors in CPU memory, of all devices and of the program
  std::uint64_t peak = 0;           ///< the largest `allocated` was
  std::uint64_t cached = 0;         ///< freed and kept for reuse
  std::uint64_t resident = 0;       ///< what the system counts (VmRSS), with code, stacks and libraries
  std::uint64_t peak_resident = 0;  ///< the largest `resident` was (VmHWM)
  bool operator==(const process_memory_use&) const = default;
};
process_memory_use memory_of_process();

/// What a logical device holds, and the process that hosts it.
struct device_memory {
  int device = 0;
  int rank = 0;
  troupe::device place = {};   ///< where it computes
  account_statistics held;     ///< in the memory of its place
  account_statistics on_host;  ///< of a device on a GPU: in the memory of the CPU; else nothing
  process_memory_use process;
  bool operator==(const device_memory&) const = default;
};

/// "cpu", "cuda:0"
std::string place_text(device place);

/// As a device sends it to the programs of all processes: i64 [1 + fields], the version first.
tensor to_tensor(const device_memory& reported);
/// Throws std::runtime_error for what to_tensor of this version has not made.
device_memory device_memory_from(const tensor& sent);

}  // namespace troupe::program
