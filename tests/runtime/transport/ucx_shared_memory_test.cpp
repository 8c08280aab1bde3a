#include <sys/resource.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "ucx_process.hpp"

using namespace troupe::testing;
using troupe::dtype;
using troupe::tensor;
using troupe::transport::tensor_tag;

namespace {

constexpr std::int64_t count = 100000;
constexpr std::size_t num_bytes = 400000;

tensor filled(ucx_process& process, float value) {
  auto made = process.link().allocate_shared({count}, dtype::f32);
  std::ranges::fill(made.values<float>(), value);
  return made;
}

bool is_all(const tensor& x, float value) {
  return std::ranges::all_of(x.values<float>(), [&](float each) { return each == value; });
}

tensor receive(ucx_process& process) { return process.events.take_tensors().front().value; }

void send(ucx_process& process, int to, std::uint64_t step, const tensor& value,
          std::uint64_t generation = 1) {
  process.link().send_tensor(to, {generation, step}, value);
}

/// Rank 1 answers everything, so that its notices have come, too.
void answer(ucx_process& process, std::uint64_t generation = 1) {
  send(process, 0, 0, tensor::zeros({1}), generation);
}

/// Segments of others that this process reads.
int num_mapped() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);)
    count +=
        line.find(" r--s ") != std::string::npos && line.find("memfd:troupe-") != std::string::npos ? 1 : 0;
  return count;
}

/// The same memory several times, which would be read in place after the first.
void exchange_copies(const test_rank& self, ucx_process& process, const tensor& ones) {
  for (std::uint64_t step = 0; step < 5; ++step) {
    if (self.rank() == 0) {
      send(process, 1, step, ones);
      receive(process);
    } else {
      expect(is_all(receive(process), 1), "the elements that were sent");
      answer(process);
    }
  }
  expect(process.link().statistics().tensor_bytes_shared == 0, "copies");
}

/// Sends `value` to rank 1 until it goes by reference.
void share(ucx_process& process, const tensor& value, std::uint64_t generation = 1) {
  auto before = process.link().statistics().tensor_bytes_shared;
  for (std::uint64_t step = 0; process.link().statistics().tensor_bytes_shared == before; ++step) {
    expect(step < 100, "a peer on the same host that reads the memory in place");
    send(process, 1, step, value, generation);
    receive(process);
  }
}

}  // namespace

TEST_CASE("a process of the same host reads shared elements where they are") {
  spawn_ranks(2, [](test_rank& self) {
    ucx_process process(self);
    process.join_all();
    if (self.rank() == 0) {
      auto x = filled(process, 1);
      share(process, x);
      std::ranges::fill(x.values<float>(), 2.0F);
      auto shared = process.link().statistics().tensor_bytes_shared;
      send(process, 1, 1000, x.rows(10, 50));
      receive(process);
      expect(process.link().statistics().tensor_bytes_shared == shared + 200,
             "a part of it is shared as well");
      x.values<float>()[59] = 3;  // after it was received: seen all the same
      send(process, 1, 1001, tensor::zeros({1}));
      receive(process);
      auto counted = process.link().statistics();
      expect(counted.peers.at(1).tensors_in_flight == 0, "nothing in flight");
      expect(counted.tensors_sent == counted.peers.at(1).tensors_sent, "notices are no tensors");
      return;
    }
    for (;;) {
      auto received = process.events.take_tensors().front();
      if (received.tag.step == 1000) {
        expect(is_all(received.value, 2) && received.value.num_elements() == 50, "the elements as they are");
        answer(process);
        receive(process);
        expect(std::as_const(received.value).values<float>()[49] == 3, "no copy of them");
        return answer(process);
      }
      expect(is_all(received.value, 1) && received.value.num_elements() == count,
             "the elements that were sent");
      answer(process);
    }
  });
}

TEST_CASE("what a peer still reads stays as it is when its owner frees it, and is unmapped afterwards") {
  spawn_ranks(2, [](test_rank& self) {
    ucx_process process(self);
    process.join_all();
    if (self.rank() == 0) {
      auto x = filled(process, 1);
      share(process, x);
      send(process, 1, 1000, x);
      receive(process);
      x = {};
      auto next = filled(process, 5);  // other memory, which is mapped in its turn
      share(process, next);
      send(process, 1, 1001, next);
      receive(process);
      next = {};
      self.wait_for(1, 1);
      return;
    }
    tensor kept;
    for (bool is_last = false; !is_last;) {
      auto received = process.events.take_tensors().front();
      is_last = received.tag.step == 1001;
      if (received.tag.step == 1000) kept = received.value;
      answer(process);
    }
    expect(is_all(kept, 1), "the elements that were sent");
    kept = {};
    while (num_mapped() > 0) std::this_thread::yield();  // without another tensor
    self.post(1);
  });
}

TEST_CASE("a process that cannot open a peer's memory gets copies") {
  spawn_ranks(2, [](test_rank& self) {
    ucx_process process(self);
    std::map<int, troupe::transport::process_address> peers;
    process.begin(1);
    for (int rank = 0; rank < 2; ++rank) peers[rank] = process.address_of(rank, 1);
    // A process with this number cannot exist: it is larger than the kernel's largest.
    auto& high_byte_of_pid =
        peers.at(0).data.at(sizeof(troupe::transport::receiver_nonce) + sizeof(pid_t) - 1);
    if (self.rank() == 1) high_byte_of_pid ^= std::byte{0x40};
    process.link().connect(1, peers);
    exchange_copies(self, process, filled(process, 1));
  });
}

TEST_CASE("without a descriptor for it memory is not shared, and its tensors are copied") {
  spawn_ranks(2, [](test_rank& self) {
    std::vector<std::string> causes;
    auto options = test_options(self.rank());
    options.on_unshared_memory = [&](const std::string& cause) { causes.push_back(cause); };
    ucx_process process(self, options);
    process.join_all();
    rlimit usual{};
    ::getrlimit(RLIMIT_NOFILE, &usual);
    auto few = usual;
    few.rlim_cur = 3;
    ::setrlimit(RLIMIT_NOFILE, &few);
    auto x = filled(process, 1);
    ::setrlimit(RLIMIT_NOFILE, &usual);
    expect(causes.size() == 1 && causes.front().find("ulimit -n") != std::string::npos, "told why");
    exchange_copies(self, process, x);
  });
}

TEST_CASE("a new generation agrees anew on the memory that is shared") {
  spawn_ranks(2, [](test_rank& self) {
    ucx_process process(self);
    auto x = filled(process, 1);
    for (std::uint64_t generation = 1; generation < 4; ++generation) {
      process.join_all(generation);
      if (self.rank() == 0) {
        auto before = process.link().statistics().tensor_bytes_shared;
        send(process, 1, 0, x, generation);
        receive(process);
        expect(process.link().statistics().tensor_bytes_shared == before, "a copy at first");
        share(process, x, generation);
        send(process, 1, 1000, x, generation);
        receive(process);
        expect(process.link().statistics().tensor_bytes_shared == before + 2 * num_bytes,
               "shared afterwards");
      } else {
        for (bool is_last = false; !is_last;) {
          auto received = process.events.take_tensors().front();
          is_last = received.tag.step == 1000;
          expect(is_all(received.value, 1), "the elements that were sent");
          answer(process, generation);
        }
      }
    }
  });
}

TEST_CASE("verified frames cover elements that are read in place") {
  spawn_ranks(2, [](test_rank& self) {
    auto options = test_options(self.rank());
    options.verify_frames = true;
    ucx_process process(self, options);
    process.join_all();
    if (self.rank() == 0) {
      share(process, filled(process, 1));
      send(process, 1, 1000, tensor::zeros({1}));
      receive(process);
      return;
    }
    for (;;) {
      auto received = process.events.take_tensors().front();
      if (received.tag.step == 1000) return answer(process);
      expect(is_all(received.value, 1), "the elements that were sent");
      answer(process);
    }
  });
}
