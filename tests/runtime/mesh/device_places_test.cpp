#include "troupe/mesh/device_places.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/error/errors.hpp"

using namespace troupe;
using namespace troupe::mesh;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr device cpu;
device gpu(int number) { return {device::kind::cuda, number}; }

/// Of the devices 0, 1, ... of a job.
std::vector<device> first_of(const device_places& places, int count, int local_rank = 0,
                             int num_devices = 1) {
  std::vector<device> found;
  for (int number = 0; number < count; ++number)
    found.push_back(places.of({number}, local_rank, num_devices));
  return found;
}

}  // namespace

TEST_CASE("devices take the named places in turn, on whichever process they are") {
  using list = std::vector<device>;
  CHECK(first_of({}, 2) == list{cpu, cpu});
  CHECK(first_of(device_places::from_string("cpu"), 2, 3, 4) == list{cpu, cpu});
  CHECK(first_of(device_places::from_string("cuda:1"), 2, 3, 4) == list{gpu(1), gpu(1)});
  CHECK(first_of(device_places::from_string("cuda:0..2"), 4, 3, 4) == list{gpu(0), gpu(1), gpu(2), gpu(0)});
  CHECK(first_of(device_places::from_string("cpu,cuda:0..1,cuda:5"), 5) ==
        list{cpu, gpu(0), gpu(1), gpu(5), cpu});
}

TEST_CASE("cuda without a number is a GPU of the device's own, counted from the process's local rank") {
  auto places = device_places::from_string("cuda");
  CHECK(first_of(places, 1, 3) == std::vector<device>{gpu(3)});
  // Devices 2 and 3 are those of the second process with two devices.
  CHECK(places.of({2}, 1, 2) == gpu(2));
  CHECK(places.of({3}, 1, 2) == gpu(3));
  CHECK(places.gpus_of_process(1, 2) == std::vector<device>{gpu(2), gpu(3)});
}

TEST_CASE("a process needs each of the named GPUs once, and none for CPUs") {
  CHECK(device_places().gpus_of_process(2, 2).empty());
  CHECK_FALSE(device_places().has_gpus());
  auto mixed = device_places::from_string("cuda:2,cpu,cuda:0..2");
  CHECK(mixed.has_gpus());
  CHECK(mixed.gpus_of_process(5, 1) == std::vector<device>{gpu(0), gpu(1), gpu(2)});
  CHECK(mixed.kind_of({1}) == device::kind::cpu);
  CHECK(mixed.kind_of({4}) == device::kind::cuda);
}

TEST_CASE("places that are none are refused with what can be said") {
  for (const char* text : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1..", "cuda:..1", "cuda:3..1",
                           "cuda:0.5", "cpu,", ",cuda", "cuda:99999", "cpu:0", "cuda:0..1..2", "CUDA"}) {
    INFO(text);
    CHECK_THROWS_WITH(device_places::from_string(text),
                      ContainsSubstring("cuda:N..M") && ContainsSubstring("got '" + std::string(text) + "'"));
  }
}
