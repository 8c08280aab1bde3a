#include <sys/resource.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "ucx_node.hpp"

using namespace troupe::testing;
using troupe::dtype;
using troupe::tensor;
using troupe::tensor_tag;

namespace {

constexpr std::int64_t count = 100000;
constexpr std::size_t num_bytes = 400000;

tensor filled(ucx_node& node, float value) {
  auto made = node.link().allocate_shared({count}, dtype::f32);
  std::ranges::fill(made.values<float>(), value);
  return made;
}

bool is_all(const tensor& x, float value) {
  return std::ranges::all_of(x.values<float>(), [&](float each) { return each == value; });
}

tensor receive(ucx_node& node) { return node.events.take_tensors().front().value; }

void send(ucx_node& node, int to, std::uint64_t step, const tensor& value, std::uint64_t generation = 1) {
  node.link().send_tensor(to, {generation, step}, value);
}

/// Rank 1 answers everything, so that its notices have come, too.
void answer(ucx_node& node, std::uint64_t generation = 1) {
  send(node, 0, 0, tensor::zeros({1}), generation);
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
void exchange_copies(const test_rank& self, ucx_node& node, const tensor& ones) {
  for (std::uint64_t step = 0; step < 5; ++step) {
    if (self.rank() == 0) {
      send(node, 1, step, ones);
      receive(node);
    } else {
      expect(is_all(receive(node), 1), "the elements that were sent");
      answer(node);
    }
  }
  expect(node.link().statistics().tensor_bytes_shared == 0, "copies");
}

/// Sends `value` to rank 1 until it goes by reference.
void share(ucx_node& node, const tensor& value, std::uint64_t generation = 1) {
  auto before = node.link().statistics().tensor_bytes_shared;
  for (std::uint64_t step = 0; node.link().statistics().tensor_bytes_shared == before; ++step) {
    expect(step < 100, "a peer on the same host that reads the memory in place");
    send(node, 1, step, value, generation);
    receive(node);
  }
}

}  // namespace

TEST_CASE("a process of the same host reads shared elements where they are") {
  spawn_ranks(2, [](test_rank& self) {
    ucx_node node(self);
    node.join_all();
    if (self.rank() == 0) {
      auto x = filled(node, 1);
      share(node, x);
      std::ranges::fill(x.values<float>(), 2.0F);
      auto shared = node.link().statistics().tensor_bytes_shared;
      send(node, 1, 1000, x.rows(10, 50));
      receive(node);
      expect(node.link().statistics().tensor_bytes_shared == shared + 200, "a part of it is shared as well");
      x.values<float>()[59] = 3;  // after it was received: seen all the same
      send(node, 1, 1001, tensor::zeros({1}));
      receive(node);
      auto counted = node.link().statistics();
      expect(counted.peers.at(1).tensors_in_flight == 0, "nothing in flight");
      expect(counted.tensors_sent == counted.peers.at(1).tensors_sent, "notices are no tensors");
      return;
    }
    for (;;) {
      auto received = node.events.take_tensors().front();
      if (received.tag.step == 1000) {
        expect(is_all(received.value, 2) && received.value.num_elements() == 50, "the elements as they are");
        answer(node);
        receive(node);
        expect(std::as_const(received.value).values<float>()[49] == 3, "no copy of them");
        return answer(node);
      }
      expect(is_all(received.value, 1) && received.value.num_elements() == count,
             "the elements that were sent");
      answer(node);
    }
  });
}

TEST_CASE("what a peer still reads stays as it is when its owner frees it, and is unmapped afterwards") {
  spawn_ranks(2, [](test_rank& self) {
    ucx_node node(self);
    node.join_all();
    if (self.rank() == 0) {
      auto x = filled(node, 1);
      share(node, x);
      send(node, 1, 1000, x);
      receive(node);
      x = {};
      auto next = filled(node, 5);  // other memory, which is mapped in its turn
      share(node, next);
      send(node, 1, 1001, next);
      receive(node);
      next = {};
      self.wait_for(1, 1);
      return;
    }
    tensor kept;
    for (bool is_last = false; !is_last;) {
      auto received = node.events.take_tensors().front();
      is_last = received.tag.step == 1001;
      if (received.tag.step == 1000) kept = received.value;
      answer(node);
    }
    expect(is_all(kept, 1), "the elements that were sent");
    kept = {};
    while (num_mapped() > 0) std::this_thread::yield();  // without another tensor
    self.post(1);
  });
}

TEST_CASE("a process that cannot open a peer's memory gets copies") {
  spawn_ranks(2, [](test_rank& self) {
    ucx_node node(self);
    std::map<int, troupe::node_address> peers;
    node.begin(1);
    for (int rank = 0; rank < 2; ++rank) peers[rank] = node.address_of(rank, 1);
    // A process with this number cannot exist: it is larger than the kernel's largest.
    auto& high_byte_of_pid = peers.at(0).data.at(sizeof(troupe::receiver_nonce) + sizeof(pid_t) - 1);
    if (self.rank() == 1) high_byte_of_pid ^= std::byte{0x40};
    node.link().connect(1, peers);
    exchange_copies(self, node, filled(node, 1));
  });
}

TEST_CASE("without a descriptor for it memory is not shared, and its tensors are copied") {
  spawn_ranks(2, [](test_rank& self) {
    std::vector<std::string> causes;
    auto options = test_options(self.rank());
    options.on_unshared_memory = [&](const std::string& cause) { causes.push_back(cause); };
    ucx_node node(self, options);
    node.join_all();
    rlimit usual{};
    ::getrlimit(RLIMIT_NOFILE, &usual);
    auto few = usual;
    few.rlim_cur = 3;
    ::setrlimit(RLIMIT_NOFILE, &few);
    auto x = filled(node, 1);
    ::setrlimit(RLIMIT_NOFILE, &usual);
    expect(causes.size() == 1 && causes.front().find("ulimit -n") != std::string::npos, "told why");
    exchange_copies(self, node, x);
  });
}

TEST_CASE("a new generation agrees anew on the memory that is shared") {
  spawn_ranks(2, [](test_rank& self) {
    ucx_node node(self);
    auto x = filled(node, 1);
    for (std::uint64_t generation = 1; generation < 4; ++generation) {
      node.join_all(generation);
      if (self.rank() == 0) {
        auto before = node.link().statistics().tensor_bytes_shared;
        send(node, 1, 0, x, generation);
        receive(node);
        expect(node.link().statistics().tensor_bytes_shared == before, "a copy at first");
        share(node, x, generation);
        send(node, 1, 1000, x, generation);
        receive(node);
        expect(node.link().statistics().tensor_bytes_shared == before + 2 * num_bytes, "shared afterwards");
      } else {
        for (bool is_last = false; !is_last;) {
          auto received = node.events.take_tensors().front();
          is_last = received.tag.step == 1000;
          expect(is_all(received.value, 1), "the elements that were sent");
          answer(node, generation);
        }
      }
    }
  });
}

TEST_CASE("verified frames cover elements that are read in place") {
  spawn_ranks(2, [](test_rank& self) {
    auto options = test_options(self.rank());
    options.verify_frames = true;
    ucx_node node(self, options);
    node.join_all();
    if (self.rank() == 0) {
      share(node, filled(node, 1));
      send(node, 1, 1000, tensor::zeros({1}));
      receive(node);
      return;
    }
    for (;;) {
      auto received = node.events.take_tensors().front();
      if (received.tag.step == 1000) return answer(node);
      expect(is_all(received.value, 1), "the elements that were sent");
      answer(node);
    }
  });
}
