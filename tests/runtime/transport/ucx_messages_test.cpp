#include <catch2/catch_test_macros.hpp>
#include <random>
#include <thread>

#include "ucx_process.hpp"

using namespace troupe::testing;
using troupe::transport::tensor_role;

namespace {

std::vector<std::byte> numbered(std::uint64_t number, std::size_t padding = 0) {
  auto bytes = troupe::wire::encode(number);
  bytes.resize(bytes.size() + padding, static_cast<std::byte>(number));
  return bytes;
}

std::uint64_t number_in(std::span<const std::byte> body) {
  return troupe::wire::decode<std::uint64_t>(body.first(sizeof(std::uint64_t)));
}

const std::vector<std::size_t> sizes = {0,    1,    7,     64,    1000,   4095,    8191,    8192,
                                        8193, 9999, 65536, 65537, 100000, 1048577, 3000001, 8 << 20};

void echo_controls(ucx_process& process) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    auto received = process.events.take_controls().front();
    process.link().send_control(0, received.generation + 1, received.body);
  }
}

void ping_controls(ucx_process& process) {
  for (auto size : sizes) {
    auto sent = pattern(size, size);
    process.link().send_control(1, 41, std::as_const(sent).bytes());
    auto received = process.events.take_controls().front();
    expect(received.from == 1 && received.generation == 42, "an answer of rank 1");
    expect(std::ranges::equal(received.body, sent.bytes()), "the bytes that were sent");
  }
}

void ping_tensors(ucx_process& process) {
  for (auto size : sizes) {
    auto sent = pattern(size, size);
    troupe::transport::tensor_tag tag{1, size, 2, 3, 4, tensor_role::gradient};
    process.link().send_tensor(1, tag, sent);
    auto received = process.events.take_tensors().front();
    expect(received.from == 1 && received.tag == tag, "the same tag");
    expect(same_bytes(received.value, sent), "the same elements");
  }
}

void echo_tensors(ucx_process& process) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    auto received = process.events.take_tensors().front();
    process.link().send_tensor(0, received.tag, received.value);
  }
}

void ping_pong(test_rank& self, const std::string& data_transports) {
  auto options = test_options(self.rank());
  options.data_transports = data_transports;
  ucx_process process(self, options);
  process.join_all();
  if (self.rank() == 0) {
    ping_controls(process);
    ping_tensors(process);
    auto counted = process.link().statistics();
    expect(counted.control_frames_sent == sizes.size() && counted.control_frames_received == sizes.size(),
           "every control frame counted");
    expect(counted.tensors_sent == sizes.size() && counted.tensors_received == sizes.size(),
           "every tensor counted");
    expect(counted.tensor_bytes_sent == counted.tensor_bytes_received && counted.tensor_bytes_sent > 8 << 20,
           "every byte counted");
    const auto& with = counted.peers.at(1);
    expect(counted.peers.size() == 1 && with.tensor_bytes_sent == counted.tensor_bytes_sent &&
               with.tensors_received == counted.tensors_received,
           "all of it with rank 1");
    expect(with.frame_bytes_sent == with.frame_bytes_received && with.frame_bytes_sent > 0,
           "bytes of control messages counted");
    // Its answers are here, so all was sent and fetched; UCX may tell this process a little later.
    while (process.link().statistics().peers.at(1).tensors_in_flight > 0) std::this_thread::yield();
    expect(process.link().statistics().peers.at(1).tensor_bytes_in_flight == 0, "nothing in flight");
    expect(process.link().statistics().peers.at(1).frame_bytes_queued == 0, "nothing queued");
    expect(counted.bad_frames == 0 && counted.stale_frames == 0, "no bad and no stale frame");
  } else {
    echo_controls(process);
    echo_tensors(process);
  }
  self.barrier(1);
}

constexpr int messages_per_pair = 1500;

std::uint64_t seed_of(int from, int to, int index) {
  return static_cast<std::uint64_t>(from) * 1000003 + static_cast<std::uint64_t>(to) * 10007 +
         static_cast<std::uint64_t>(index);
}

/// Mostly small, some by rendezvous; the same on both sides.
std::size_t size_of(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  auto kind = random() % 20;
  return kind == 0 ? random() % 200000 : kind < 5 ? random() % 20000 : random() % 600;
}

/// Every rank sends to every rank, itself included, before it looks at what came.
void all_to_all(test_rank& self) {
  ucx_process process(self);
  process.join_all();
  for (int index = 0; index < messages_per_pair; ++index)
    for (int to = 0; to < self.size(); ++to) {
      auto seed = seed_of(self.rank(), to, index);
      process.link().send_tensor(to, {1, static_cast<std::uint64_t>(index), 0, 0, 0, tensor_role::activation},
                                 pattern(size_of(seed), seed));
      process.link().send_control(to, 1, numbered(static_cast<std::uint64_t>(index), size_of(seed) % 20000));
    }
  auto expected = static_cast<std::size_t>(messages_per_pair) * static_cast<std::size_t>(self.size());
  std::map<int, std::vector<int>> seen;
  for (const auto& arrived : process.events.take_tensors(expected)) {
    auto index = static_cast<int>(arrived.tag.step);
    seen[arrived.from].push_back(index);
    auto seed = seed_of(arrived.from, self.rank(), index);
    expect(same_bytes(arrived.value, pattern(size_of(seed), seed)), "the elements that were sent");
  }
  for (auto& [from, indices] : seen) {
    std::ranges::sort(indices);
    for (int index = 0; index < messages_per_pair; ++index)
      expect(indices.at(static_cast<std::size_t>(index)) == index, "each tensor once");
  }
  std::map<int, std::uint64_t> next;
  for (const auto& arrived : process.events.take_controls(expected))
    expect(number_in(arrived.body) == next[arrived.from]++, "control messages in order");
  self.barrier(1);
}

struct tagged_tensor {
  troupe::transport::tensor_tag tag;
  troupe::tensor value;
};

/// Numbered by microbatch. Most differ from the one before by the step and the elements, but every field
/// changes many times.
std::vector<tagged_tensor> changing_tensors(std::uint32_t count) {
  std::mt19937_64 random(7);
  troupe::transport::tensor_tag tag{1, 0xFFFFFF00, 0, 0, 0, tensor_role::activation};
  std::int64_t rows = 1;
  auto type = troupe::dtype::i32;
  std::vector<tagged_tensor> all;
  for (; tag.microbatch < count; ++tag.microbatch) {
    tag.step += random() % 2;  // beyond 32 bits on the way
    auto change = random() % 60;
    if (change == 0) tag.call ^= 1;
    if (change == 1) tag.stage ^= 1;
    if (change == 2) tag.role = random() % 2 == 0 ? tensor_role::gradient : tensor_role::reduction_partial;
    if (change == 3) type = random() % 2 == 0 ? troupe::dtype::i32 : troupe::dtype::f32;
    if (change < 8) rows = static_cast<std::int64_t>(random() % (change == 7 ? 4000 : 150));
    all.push_back({tag, troupe::tensor::empty({rows, 2}, type)});
    std::ranges::copy(pattern(all.back().value.size_bytes(), random()).bytes(),
                      all.back().value.bytes().begin());
  }
  return all;
}

}  // namespace

TEST_CASE("messages of any size arrive unchanged") {
  SECTION("shared memory") {
    spawn_ranks(2, [](test_rank& self) { ping_pong(self, "sysv,cma"); });
  }
  SECTION("shared memory without access to the other's memory") {
    spawn_ranks(2, [](test_rank& self) { ping_pong(self, "sysv,tcp"); });
  }
  SECTION("tcp") {
    spawn_ranks(2, [](test_rank& self) { ping_pong(self, "tcp"); });
  }
}

TEST_CASE("thousands of messages between four ranks arrive once and complete, control messages in order") {
  spawn_ranks(4, all_to_all, std::chrono::seconds(100));
}

TEST_CASE("sixteen ranks connect at once") {
  spawn_ranks(16, [](test_rank& self) {
    ucx_process process(self);
    for (std::uint64_t generation = 1; generation <= 3; ++generation) {
      process.join_all(generation);
      for (int to = 0; to < self.size(); ++to) {
        process.link().send_control(to, generation, numbered(generation));
        process.link().send_tensor(to, {generation}, pattern(20000, generation));
      }
      for (const auto& received : process.events.take_tensors(16))
        expect(same_bytes(received.value, pattern(20000, generation)), "what was sent");
      for (const auto& received : process.events.take_controls(16))
        expect(number_in(received.body) == generation, "this generation's message");
      self.barrier(static_cast<int>(generation));
    }
    expect(process.events.error_count() == 0, "no connection broke");
    self.barrier(4);
  });
}

TEST_CASE("tensors keep their shape and dtype") {
  spawn_ranks(2, [](test_rank& self) {
    ucx_process process(self);
    process.join_all();
    auto sent = troupe::tensor::from(std::vector<std::int64_t>{1, -2, 3, 4, 5, 6}, {2, 1, 3});
    auto scalar = troupe::tensor::from(std::vector<float>{0.5F}, troupe::shape{});
    auto nothing = troupe::tensor::empty({3, 0, 5});
    if (self.rank() == 0)
      for (const auto& one : {sent, scalar, nothing}) process.link().send_tensor(1, {1}, one);
    else {
      auto received = process.events.take_tensors(3);
      for (std::size_t i = 0; i < 3; ++i)
        expect(same_bytes(received[i].value, std::vector{sent, scalar, nothing}[i]), "the same tensor");
    }
    self.barrier(1);
  });
}

TEST_CASE("tensors with headers like or unlike the previous one arrive with their own headers") {
  spawn_ranks(2, [](test_rank& self) {
    ucx_process process(self);
    process.join_all();
    constexpr std::uint32_t count = 5000;
    auto same = changing_tensors(count);
    if (self.rank() == 0) {
      for (const auto& [tag, value] : same) process.link().send_tensor(1, tag, value);
    } else {
      for (const auto& received : process.events.take_tensors(count)) {
        const auto& [tag, value] = same.at(received.tag.microbatch);
        expect(received.from == 0 && received.tag == tag, "its tag");
        expect(same_bytes(received.value, value), "its shape, dtype and elements");
      }
      expect(process.link().statistics().bad_frames == 0, "nothing dropped");
    }
    self.barrier(1);
  });
}

TEST_CASE("a receiver may answer from inside the delivery, and several threads may send") {
  spawn_ranks(2, [](test_rank& self) {
    ucx_process process(self);
    constexpr std::uint64_t rounds = 300;
    constexpr int threads = 4;
    process.events.intercept(
        [&](int from, const troupe::transport::tensor_tag& tag, const troupe::tensor& value) {
          if (tag.step + 1 < rounds) process.link().send_tensor(from, {1, tag.step + 1, tag.call}, value);
          return tag.step + 1 < rounds;
        });
    process.join_all();
    self.barrier(1);
    std::vector<std::jthread> senders;
    for (std::uint32_t thread = 0; thread < threads; ++thread)
      senders.emplace_back([&process, &self, thread] {
        if (self.rank() == 0) process.link().send_tensor(1, {1, 0, thread}, pattern(12345, thread));
        for (int i = 0; i < 200; ++i) process.link().send_control(1 - self.rank(), 1, numbered(thread));
      });
    senders.clear();
    expect(process.events.take_controls(threads * 200).size() == threads * 200, "every control message");
    if (self.rank() == 0)  // the last of an even number of rounds
      for (const auto& last : process.events.take_tensors(threads))
        expect(same_bytes(last.value, pattern(12345, last.tag.call)), "the elements after many rounds");
    self.barrier(2);
  });
}
