// A thread that receives the tensors it waits for itself.
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <mutex>
#include <thread>

#include "ucx_process.hpp"

using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

/// Takes tensors of stage 1 until it has as many as it waits for, or is told to stop. What comes by the other
/// way, because it was away for a while, counts too.
struct stage_one final : troupe::transport::tensor_waiter {
  using arrived_tensor = event_recorder::arrived_tensor;
  std::atomic<std::size_t> wanted = 1;
  std::atomic<bool> stopped = false;
  std::vector<std::thread::id> threads;  ///< the threads that called take()

  bool take(int from_rank, const troupe::transport::tensor_tag& tag, troupe::tensor& value) override {
    if (tag.stage != 1) return false;
    threads.push_back(std::this_thread::get_id());
    add({from_rank, tag, std::move(value)});
    return true;
  }
  bool waits() const override { return num_taken_ < wanted && !stopped; }

  void add(arrived_tensor arrived) {
    std::lock_guard lock(mutex_);
    taken_.push_back(std::move(arrived));
    num_taken_ = taken_.size();
  }
  arrived_tensor last() {
    std::lock_guard lock(mutex_);
    return taken_.back();
  }
  void also_from(ucx_process& process) {
    process.events.intercept(
        [this, &process](int from, const troupe::transport::tensor_tag& tag, const troupe::tensor& value) {
          if (tag.stage != 1) return false;
          add({from, tag, value});
          process.link().wake_receiver();
          return true;
        });
  }

 private:
  std::mutex mutex_;
  std::vector<arrived_tensor> taken_;
  std::atomic<std::size_t> num_taken_ = 0;
};

troupe::transport::tensor_tag tag(std::uint64_t step, std::uint32_t stage) { return {1, step, 0, stage}; }

constexpr std::size_t many = 200;

/// Rank 0 waits, polling for so long before it sleeps, and answers each tensor from inside.
void answer_while_waiting(test_rank& self, std::chrono::nanoseconds spin, const std::string& transports) {
  auto options = test_options(self.rank());
  options.data_transports = transports;
  ucx_process process(self, options);
  stage_one waiter;
  waiter.also_from(process);
  process.join_all();
  self.barrier(1);
  auto size_of = [](std::size_t i) { return i % 10 == 9 ? 100000 + i : i; };
  if (self.rank() == 1) {
    for (std::size_t i = 0; i < many; ++i) {
      process.link().send_tensor(0, tag(i, 1), pattern(size_of(i), i));
      waiter.wanted = i + 1;
      expect(process.link().receive_for(waiter, spin), "its turn");
      expect(same_bytes(waiter.last().value, pattern(size_of(i), i)), "the answer");
    }
  } else {
    for (waiter.wanted = 1; waiter.wanted <= many; ++waiter.wanted) {
      expect(process.link().receive_for(waiter, spin), "its turn");
      auto asked = waiter.last();
      process.link().send_tensor(1, asked.tag, asked.value);
    }
  }
  for (auto thread : waiter.threads) expect(thread == std::this_thread::get_id(), "its own thread");
  process.link().stop_receiving(waiter);
  self.barrier(2);
}

}  // namespace

TEST_CASE("a thread that waits for a tensor receives it itself, whether it polls or sleeps") {
  for (const char* transports : {"sysv,cma", "tcp"})
    for (auto spin : {0ns, std::chrono::nanoseconds(10s)})
      spawn_ranks(2, [&](test_rank& self) { answer_while_waiting(self, spin, transports); });
}

TEST_CASE("tensors that a waiter does not take are delivered as usual") {
  spawn_ranks(2, [](test_rank& self) {
    ucx_process process(self);
    stage_one waiter;
    waiter.also_from(process);
    process.join_all();
    if (self.rank() == 1) {
      process.link().send_tensor(0, tag(1, 2), pattern(100, 1));
      process.link().send_tensor(0, tag(2, 1), pattern(50000, 2));
      self.wait_for(0, 1);
    } else {
      expect(process.link().receive_for(waiter, 0ns), "its turn");
      expect(waiter.last().tag.step == 2, "the tensor it takes");
      expect(process.events.take_tensors().front().tag.step == 1, "the tensor it does not take");
      process.link().stop_receiving(waiter);
      self.post(1);
    }
  });
}

TEST_CASE("a sleeping waiter checks again when it is woken, and a second waiter is refused") {
  spawn_ranks(1, [](test_rank& self) {
    ucx_process process(self);
    process.join_all();
    stage_one first, second;
    second.stopped = true;  // it looks in, and goes
    std::jthread waiting([&] {
      while (!process.link().receive_for(first, 0ns)) {
      }
    });
    while (process.link().receive_for(second, 0ns)) process.link().stop_receiving(second);
    first.stopped = true;
    process.link().wake_receiver();
    waiting.join();
    expect(!process.link().receive_for(second, 0ns), "still the first one's turn");
    process.link().stop_receiving(first);
    expect(process.link().receive_for(second, 0ns), "anybody's turn again");
  });
}

TEST_CASE("tensors arrive although the owner of polling is busy with something else") {
  spawn_ranks(2, [](test_rank& self) {
    ucx_process process(self);
    process.join_all();
    if (self.rank() == 1) {
      self.wait_for(0, 1);
      process.link().send_tensor(0, tag(2, 1), pattern(10, 2));
      process.link().send_tensor(0, tag(3, 1), pattern(3000000, 3));
      self.wait_for(0, 2);
    } else {
      stage_one waiter;
      waiter.stopped = true;
      expect(process.link().receive_for(waiter, 0ns), "its turn");  // and gone already
      self.post(1);
      auto others =
          process.events.take_tensors(2);  // by the transport's thread, while the waiter does not come back
      expect(same_bytes(others[1].value, pattern(3000000, 3)), "the large tensor");
      process.link().stop_receiving(waiter);
      self.post(2);
    }
  });
}

TEST_CASE("a waiter outlives the generation in which it waits") {
  spawn_ranks(2, [](test_rank& self) {
    ucx_process process(self);
    stage_one waiter;
    waiter.also_from(process);
    process.join_all(1);
    std::jthread waiting([&] { process.link().receive_for(waiter, 0ns); });
    self.barrier(1);
    process.begin(2);
    self.barrier(2);
    process.connect(2, {0, 1});
    auto next = tag(5, 1);
    next.generation = 2;
    process.link().send_tensor(1 - self.rank(), next, pattern(70000, 5));
    waiting.join();
    expect(waiter.last().tag == next, "the tensor of the next generation");
    process.link().stop_receiving(waiter);
    self.barrier(3);
  });
}

TEST_CASE(
    "a large tensor is read directly from the sender's memory into its buffer, and a small one is copied "
    "once") {
  spawn_ranks(2, [](test_rank& self) {
    ucx_process process(self);
    process.join_all();
    auto large = pattern(1 << 20, 1);
    if (self.rank() == 0) {
      self.wait_for(1, 1);
      self.stop(1);  // so that it reads after the change
      process.link().send_tensor(1, tag(1, 1), large);
      large.values<std::uint8_t>()[777] ^= 1;
      self.resume(1);
      self.wait_for(1, 2);
      process.link().send_tensor(1, tag(2, 1), pattern(8, 2));
      self.wait_for(1, 3);
      expect(process.link().statistics().tensor_bytes_copied == 0, "nothing copied by the sender");
    } else {
      self.post(1);
      auto received = process.events.take_tensors().front().value;
      large.values<std::uint8_t>()[777] ^= 1;
      expect(same_bytes(received, large), "the elements as they were when they were read");
      expect(process.link().statistics().tensor_bytes_copied == 0, "nothing copied by the receiver");
      self.post(2);
      expect(same_bytes(process.events.take_tensors().front().value, pattern(8, 2)), "the small tensor");
      expect(process.link().statistics().tensor_bytes_copied == 8, "each of its bytes copied once");
      self.post(3);
    }
  });
}
