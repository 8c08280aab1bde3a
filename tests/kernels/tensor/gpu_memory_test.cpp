#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <new>
#include <thread>
#include <vector>

#include "support/bits.hpp"
#include "support/devices.hpp"
#include "troupe/tensor/async/async_device_copy.hpp"
#include "troupe/tensor/memory.hpp"

using troupe::device;
using troupe::dtype;
using troupe::tensor;
using troupe::testing::first_gpu;
using troupe::testing::same_bits;

namespace {

/// Bytes that differ from place to place and from `seed` to `seed`.
tensor pattern(std::int64_t size, std::uint32_t seed) {
  std::vector<std::uint8_t> values;
  auto state = seed;
  for (std::int64_t i = 0; i < size; ++i) {
    state = state * 1664525U + 1013904223U;
    values.push_back(static_cast<std::uint8_t>(state >> 24));
  }
  return tensor::from(values, {size});
}

constexpr std::int64_t mebibyte = 1 << 20;

}  // namespace

TEST_CASE("any number of bytes is copied to a GPU and back unchanged") {
  auto gpu = first_gpu();
  for (std::int64_t size : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1001}, mebibyte, mebibyte + 1,
                            8 * mebibyte, 21 * mebibyte + 7}) {
    auto here = pattern(size, 1);
    auto there = here.to(gpu);
    CHECK(there.device() == gpu);
    CHECK(same_bits(there.to({}), here));
    CHECK(same_bits(there.clone(), here));
  }
}

TEST_CASE("single rows of a GPU's tensor are copied and zeroed") {
  auto gpu = first_gpu();
  auto here = pattern(30, 2).reshape({10, 3});
  auto there = here.to(gpu);
  CHECK(same_bits(there.rows(3, 2), here.rows(3, 2)));
  there.rows(4, 1).fill_zero();
  here.rows(4, 1).fill_zero();
  there.rows(0, 2).copy_from(here.rows(7, 2));
  here.rows(0, 2).copy_from(here.rows(7, 2));
  CHECK(same_bits(there, here));
}

TEST_CASE("the memory of a freed tensor on a GPU serves the next one") {
  auto gpu = first_gpu();
  { auto first = tensor::zeros({5, 1000}, dtype::f32, gpu); }
  auto before = troupe::memory_of(gpu);
  CHECK(before.cached >= 20'000);
  auto second = tensor::zeros({5, 1000}, dtype::f32, gpu);
  auto after = troupe::memory_of(gpu);
  CHECK(after.num_from_system == before.num_from_system);
  CHECK(after.current >= before.current + 20'000);
  second = {};
  troupe::release_cached_memory(gpu);
  CHECK(troupe::memory_of(gpu).cached == 0);
}

TEST_CASE("memory that is freed and allocated again keeps the order of its writers") {
  auto gpu = first_gpu();
  for (std::uint32_t round = 0; round < 50; ++round) {
    auto here = pattern(mebibyte, round);
    auto there = here.to(gpu);
    auto copy = there.clone();
    there = {};
    auto zeros = tensor::zeros({mebibyte}, dtype::u8, gpu);  // in the block that `there` had
    REQUIRE(same_bits(copy, here));
  }
}

TEST_CASE("an allocation beyond a GPU's memory is an error, and the GPU stays usable") {
  auto gpu = first_gpu();
  CHECK_THROWS_AS(tensor::empty({std::int64_t{1} << 46}, dtype::u8, gpu), std::bad_alloc);
  CHECK(same_bits(pattern(100, 3).to(gpu), pattern(100, 3)));
}

TEST_CASE("threads copy to and from one GPU at the same time") {
  auto gpu = first_gpu();
  std::vector<int> equal(4);
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t number = 0; number < equal.size(); ++number)
      threads.emplace_back([&, number] {
        auto here = pattern(3 * mebibyte + number, number);
        for (int round = 0; round < 10; ++round) equal[number] += same_bits(here.to(gpu).to({}), here);
      });
  }
  CHECK(equal == std::vector<int>(4, 10));
}

TEST_CASE(
    "a copy from the CPU beside what is queued comes after what still reads its memory, and before what "
    "reads it") {
  auto gpu = first_gpu();
  for (std::uint32_t number = 0; number < 20; ++number) {
    auto first = async_device_copy(pattern(mebibyte + 5, number), gpu);
    auto read = first.clone();
    first = {};  // its memory is the next copy's, once it is read
    auto second = async_device_copy(pattern(mebibyte + 5, 99), gpu);
    auto also_read = second.clone();
    CHECK(same_bits(read, pattern(mebibyte + 5, number)));
    CHECK(same_bits(also_read, pattern(mebibyte + 5, 99)));
  }
  CHECK(async_device_copy(tensor::empty({0}), gpu).num_elements() == 0);
}

TEST_CASE("copies from the CPU beside what is queued reuse memory") {
  auto gpu = first_gpu();
  async_device_copy(pattern(mebibyte + 7, 1), gpu);
  for (std::uint32_t number = 0; number < 20; ++number) {
    troupe::synchronize(gpu);
    auto before = troupe::memory_of(gpu);
    auto there = async_device_copy(pattern(mebibyte + 7, number), gpu);
    auto with = troupe::memory_of(gpu);
    CHECK(with.num_from_system == before.num_from_system);
    CHECK(with.current > before.current);
    CHECK(with.current + with.cached == before.current + before.cached);
  }
}

TEST_CASE("a GPU goes on while another one copies from it, and keeps what is copied until then") {
  first_gpu();
  if (troupe::num_cuda_devices() < 2) SKIP("one GPU here");
  device first{device::kind::cuda, 0}, second{device::kind::cuda, 1};
  std::vector<tensor> there;
  for (std::uint32_t number = 0; number < 8; ++number) {
    auto here = pattern(mebibyte + 5, number).to(first);
    there.push_back(async_device_copy(here, second));
    here = pattern(mebibyte + 5, 99).to(first);  // in the block of the one before, if that was not kept
  }
  for (std::uint32_t number = 0; number < 8; ++number) {
    CHECK(there[number].device() == second);
    CHECK(same_bits(there[number], pattern(mebibyte + 5, number)));
  }
  there.front() = {};
  troupe::synchronize(first);
  troupe::release_cached_memory(first);  // and what was kept for the copies
  CHECK(troupe::memory_of(first).current == 0);
  CHECK(same_bits(async_device_copy(there[3], device()), pattern(mebibyte + 5, 3)));
  CHECK(async_device_copy(tensor::empty({0}, dtype::f32, first), second).num_elements() == 0);
}

TEST_CASE("a copy from another GPU comes after what still reads the memory that it is written to") {
  first_gpu();
  if (troupe::num_cuda_devices() < 2) SKIP("one GPU here");
  device first{device::kind::cuda, 0}, second{device::kind::cuda, 1};
  auto from = pattern(mebibyte + 5, 1).to(first);
  for (bool beside : {false, true})
    for (std::uint32_t number = 0; number < 8; ++number) {
      auto written = pattern(mebibyte + 5, number);
      auto before = beside ? async_device_copy(written, second) : written.to(second);
      auto kept = before.clone();
      before = {};  // its memory is the next tensor's
      auto there = beside ? async_device_copy(from, second) : from.to(second);
      troupe::synchronize(first);
      CHECK(same_bits(kept, pattern(mebibyte + 5, number)));
      CHECK(same_bits(there, pattern(mebibyte + 5, 1)));
    }
}

TEST_CASE("bytes are copied from one GPU to another") {
  first_gpu();
  if (troupe::num_cuda_devices() < 2) SKIP("one GPU here");
  auto here = pattern(5 * mebibyte + 3, 4);
  auto there = here.to({device::kind::cuda, 0}).to({device::kind::cuda, 1});
  CHECK(there.device().index == 1);
  CHECK(same_bits(there, here));
}
