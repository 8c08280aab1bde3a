// What is left when CUDA fails, and when recordings end in unusual ways; what copies wait for.
#include <cuda_runtime_api.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "support/bits.hpp"
#include "support/cuda_emulation/runtime/gpus.hpp"
#include "troupe/error/device_lost.hpp"
#include "troupe/tensor/async/async_device_copy.hpp"
#include "troupe/tensor/captured_step.hpp"
#include "troupe/tensor/cuda/cuda_error.hpp"
#include "troupe/tensor/devices.hpp"
#include "troupe/tensor/memory.hpp"
#include "troupe/tensor/tensor.hpp"

namespace emulation = troupe::emulation;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using troupe::captured_step;
using troupe::device;
using troupe::dtype;
using troupe::tensor;
using troupe::testing::same_bits;

namespace {

/// The cases run in any order and number within a process, so each that fails a GPU's beginning has its own.
device gpu(int index) {
  emulation::set_num_gpus(5);
  return {device::kind::cuda, index};
}

tensor numbers(std::int32_t first) {
  return tensor::from(std::vector<std::int32_t>{first, 1, 4, 1, 5, 9, 2, 6}, {8});
}

void require_whole_beginning(device target, const char* function, int calls_before) {
  auto handles = emulation::num_live_handles(), pinned = emulation::num_pinned_allocations();
  emulation::fail_call(function, cudaErrorMemoryAllocation, calls_before);
  CHECK_THROWS_AS(troupe::synchronize(target), troupe::cuda_error);
  CHECK(emulation::num_live_handles() == handles);
  CHECK(emulation::num_pinned_allocations() == pinned);
  CHECK(same_bits(numbers(3).to(target), numbers(3)));
}

}  // namespace

TEST_CASE("a GPU whose first use fails halfway leaks nothing, and works at the next use") {
  require_whole_beginning(gpu(1), "cudaStreamCreateWithFlags", 0);
  require_whole_beginning(gpu(2), "cudaHostAlloc", 3);
  require_whole_beginning(gpu(3), "cudaEventCreateWithFlags", 5);
}

TEST_CASE("memory that CUDA fails to free is not freed twice") {
  auto target = gpu(0);
  troupe::release_cached_memory(target);
  { auto a = tensor::empty({1000}, dtype::u8, target), b = tensor::empty({1000}, dtype::u8, target); }
  emulation::fail_call("cudaFree", cudaErrorLaunchFailure, 1);
  CHECK_THROWS_AS(troupe::release_cached_memory(target), troupe::device_lost);
  troupe::release_cached_memory(target);
  CHECK(troupe::memory_of(target).cached == 0);
}

TEST_CASE("an error within a kernel is told from others: after it the process cannot use its GPUs") {
  auto target = gpu(0);
  auto x = numbers(1).to(target);
  for (auto status : {cudaErrorIllegalAddress, cudaErrorMisalignedAddress, cudaErrorECCUncorrectable}) {
    emulation::fail_call("cudaMemcpyAsync", status);
    CHECK_THROWS_AS(x.to({}), troupe::device_lost);
  }
  emulation::fail_call("cudaMemcpyAsync", cudaErrorInvalidValue);
  CHECK_THROWS_AS(x.to({}), troupe::cuda_error);
  CHECK(troupe::testing::same_bits(x, numbers(1)));
}

TEST_CASE("a failed recording releases its memory at once") {
  auto target = gpu(0);
  auto x = numbers(1).to(target);
  auto before = troupe::memory_of(target).current;
  auto pinned = emulation::num_pinned_allocations();
  int runs = 0;
  captured_step step(target, [&] {
    auto copy = x.clone();
    copy.copy_from(numbers(2));
    if (++runs == 2) throw std::runtime_error("no more");
  });
  step.run();
  CHECK_THROWS_AS(step.run(), std::runtime_error);
  CHECK(troupe::memory_of(target).current == before);
  CHECK(emulation::num_pinned_allocations() == pinned);
  step.run();
  CHECK(step.is_captured());
}

TEST_CASE("a step destroyed while another is recorded waits for its own replays") {
  auto target = gpu(0);
  auto x = numbers(1).to(target), y = numbers(2).to(target), z = numbers(3).to(target);
  auto inner = std::make_optional<captured_step>(target, [&] { y.copy_from(numbers(7)); });
  inner->run();
  inner->run();  // reads memory of its own
  int runs = 0;
  captured_step outer(target, [&] {
    z.copy_from(x);
    if (++runs == 2) inner.reset();
  });
  outer.run();
  outer.run();
  CHECK(outer.is_captured());
  CHECK(same_bits(y, numbers(7)));
  CHECK(same_bits(z, numbers(1)));
}

TEST_CASE("a recorded step cannot run within the recording of another") {
  auto target = gpu(0);
  auto y = numbers(2).to(target);
  captured_step inner(target, [&] { y.fill_zero(); });
  inner.run();
  inner.run();
  int runs = 0;
  captured_step outer(target, [&] {
    if (++runs == 2) inner.run();
  });
  outer.run();
  CHECK_THROWS_MATCHES(outer.run(), std::logic_error,
                       MessageMatches(ContainsSubstring("[captured_step] expected runs outside of another")));
  CHECK_FALSE(outer.is_captured());
  inner.run();
  CHECK(same_bits(y, tensor::zeros({8}, dtype::i32)));
}

TEST_CASE("a step is destroyed without an exception when calls of CUDA fail") {
  auto target = gpu(0);
  auto y = numbers(2).to(target);
  auto step = std::make_optional<captured_step>(target, [&] { y.fill_zero(); });
  step->run();
  step->run();
  emulation::fail_call("cudaGetDevice", cudaErrorLaunchFailure);
  step.reset();  // an exception here would end the process
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(same_bits(y, tensor::zeros({8}, dtype::i32)));
}

TEST_CASE("a copy from the CPU waits for nothing that is queued") {
  auto target = gpu(4);
  auto queued = numbers(7).to(target).clone();
  auto before = emulation::num_queued();
  REQUIRE(before > 0);
  // More than all pinned slots hold, so that it waits for its own first ones.
  auto large = tensor::zeros({24 << 20}, dtype::u8);
  auto there = troupe::async_device_copy(large, target);
  CHECK(emulation::num_queued() >= before + 8);  // the last slots' copies
  CHECK(same_bits(there.to({}), large));
  CHECK(same_bits(queued.to({}), numbers(7)));
}

TEST_CASE("a copy from the CPU that fails halfway is over before its memory serves others") {
  auto target = gpu(4);
  auto large = tensor::full({4 << 20}, 3);
  emulation::fail_call("cudaStreamWaitEvent", cudaErrorMemoryAllocation);
  CHECK_THROWS_AS(troupe::async_device_copy(large, target), troupe::cuda_error);
  auto next = tensor::full({4 << 20}, 5).to(target);
  auto read = next.to({});
  CHECK(same_bits(read, tensor::full({4 << 20}, 5)));
  troupe::synchronize(target);
  CHECK(same_bits(next.to({}), read));
}

TEST_CASE("a copy for another GPU waits for what is queued before a tensor is given, and for nothing later") {
  auto first = gpu(2), second = gpu(3);
  auto given = troupe::computed_by_now(numbers(7).to(first));
  auto queued_before = emulation::num_queued();
  auto later = numbers(8).to(first);
  auto there = troupe::async_device_copy(given, second);
  CHECK(same_bits(there.to({}), numbers(7)));
  CHECK(emulation::num_queued() > 0);  // of `later`
  CHECK(queued_before > 0);
  CHECK(same_bits(later.to({}), numbers(8)));
  CHECK(emulation::num_queued() == 0);
}
