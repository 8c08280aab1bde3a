#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <random>
#include <thread>

#include "ucx_process.hpp"

using namespace troupe::testing;

namespace {

/// Keeps a number of tensors on the way to every peer by answering each one that comes, and checks what
/// comes. Shared, because a tensor may still come when a test is done with it; the process must outlive it.
class flood : public std::enable_shared_from_this<flood> {
 public:
  flood(ucx_process& process, std::uint64_t generation, std::vector<int> peers, std::uint64_t seed)
      : process_(process), generation_(generation), peers_(std::move(peers)), random_(seed) {}

  void listen() {
    process_.events.intercept([self = shared_from_this()](int from, const troupe::transport::tensor_tag& tag,
                                                          const troupe::tensor& value) {
      return self->on_tensor(from, tag, value);
    });
  }
  void start() {
    for (int round = 0; round < 8; ++round)
      for (int peer : peers_) send(peer);
  }
  /// From then on nothing is answered.
  void stop() { running_ = false; }
  void wait_for(int count) {
    process_.events.wait_until([&] { return received_ >= count; });
  }
  bool sound() const { return sound_; }

 private:
  bool on_tensor(int from, const troupe::transport::tensor_tag& tag, const troupe::tensor& value) {
    if (tag.generation != generation_) return true;
    if (!same_bytes(value, pattern(value.size_bytes(), tag.step))) sound_ = false;
    ++received_;
    process_.events.poke();
    if (running_) send(from);
    return true;
  }
  void send(int peer) {
    std::uint64_t seed = 0;
    {
      std::lock_guard lock(mutex_);
      seed = random_();
    }
    auto size = seed % 16 == 0 ? seed % 1000000 : seed % 3 == 0 ? seed % 60000 : seed % 500;
    process_.link().send_tensor(peer, {generation_, seed}, pattern(size, seed));
  }

  ucx_process& process_;
  std::uint64_t generation_;
  std::vector<int> peers_;
  std::mutex mutex_;
  std::mt19937_64 random_;
  std::atomic<bool> running_ = true;
  std::atomic<bool> sound_ = true;
  std::atomic<int> received_ = 0;
};

std::vector<int> without(std::vector<int> ranks, int left_out) {
  std::erase(ranks, left_out);
  return ranks;
}

constexpr int world = 4;
constexpr int spare = 4;  // a process that waits to replace the lost rank

std::shared_ptr<flood> make_flood(ucx_process& process, std::uint64_t generation, int rank,
                                  std::uint64_t seed) {
  auto made = std::make_shared<flood>(process, generation, without({0, 1, 2, 3}, rank),
                                      seed + static_cast<std::uint64_t>(rank));
  made->listen();
  return made;
}

void flood_after(ucx_process& process, int rank, const std::vector<int>& processes, std::uint64_t seed,
                 test_rank& self) {
  auto second = make_flood(process, 2, rank, seed * 100);
  process.connect(2, processes);
  second->start();
  second->wait_for(200);
  expect(second->sound(), "the elements that were sent in the second generation");
  self.post(50);
  for (int peer : processes) self.wait_for(peer, 50);
  second->stop();
  expect(process.events.error_count() == (self.rank() == spare ? 0 : 1), "one error, of the lost rank");
  self.post(51);
  for (int peer : processes) self.wait_for(peer, 51);
}

/// Sends a tensor to every peer and waits for one from each, so that all connections are complete: UCX does
/// not survive the end of a peer during a connection over TCP.
void exchange_with_all(ucx_process& process, test_rank& self) {
  for (int peer : without({0, 1, 2, 3}, self.rank()))
    process.link().send_tensor(peer, {1, 1}, pattern(20000, 1));
  process.events.wait_until([&] { return process.link().statistics().tensors_received >= world - 1; });
  self.post(40);
  for (int peer = 0; peer < world; ++peer) self.wait_for(peer, 40);
}

/// In one generation all ranks send many tensors to each other and one rank is killed. In the next one a new
/// process replaces it.
void lose_one(test_rank& self, int victim, std::uint64_t seed, const std::string& data_transports) {
  auto processes = std::vector<int>{0, 1, 2, 3};
  auto next_processes = processes;
  next_processes[static_cast<std::size_t>(victim)] = spare;
  int rank = self.rank() == spare ? victim : self.rank();
  auto options = test_options(rank);
  options.data_transports = data_transports;
  ucx_process process(self, options);
  if (self.rank() != spare) {
    auto first = make_flood(process, 1, rank, seed * 10);
    process.join(1, processes);
    if (data_transports == "tcp") exchange_with_all(process, self);
    first->start();
    if (rank == (victim + 1) % world) {
      first->wait_for(static_cast<int>(seed * 37 % 500));
      self.kill(victim);
    }
    process.events.wait_for_error(victim);
    first->stop();
    expect(first->sound(), "the elements that were sent");
    process.begin(2);
    flood_after(process, rank, next_processes, seed, self);
    expect(process.link().statistics().bad_frames == 0, "no bad frame");
  } else {
    process.begin(2);
    flood_after(process, rank, next_processes, seed, self);
  }
}

/// Rank 1 dies after its address is known and before rank 0 connects to it.
void connect_to_ended_peer(test_rank& self) {
  ucx_process process(self);
  process.begin(1);
  if (self.rank() == 1) self.kill(1);
  self.wait_for_death(1);
  process.connect(1, {0, 1});
  for (int i = 0; i < 50; ++i) {
    process.link().send_tensor(1, {1}, pattern(static_cast<std::size_t>(i) * 10000, 1));
    process.link().send_control(1, 1, {});
  }
  process.events.wait_for_error(1);
  process.begin(2);
  expect(process.events.error_count() == 1, "one error");
}

/// Rank 1 dies at some moment while both connect.
void die_while_connecting(test_rank& self, int seed) {
  ucx_process process(self);
  process.begin(1);
  if (self.rank() == 0) {
    auto other = process.address_of(1, 1);
    auto start = std::chrono::steady_clock::now();
    std::thread killer([&] {
      while (std::chrono::steady_clock::now() - start < std::chrono::microseconds(seed * 40))
        std::this_thread::yield();
      self.kill(1);
    });
    self.post(1);
    process.connect(1, {0, 1});
    for (int i = 0; i < 20; ++i)
      process.link().send_tensor(1, {1}, pattern(static_cast<std::size_t>(i) * 5000, 1));
    killer.join();
    process.events.wait_for_error(1);
    process.begin(2);
  } else {
    self.wait_for(0, 1);
    process.connect(1, {0, 1});
    for (int i = 0; i < 1000000; ++i)
      process.link().send_tensor(0, {1}, pattern(static_cast<std::size_t>(i % 20) * 5000, 1));
    self.wait_for(0, 999);  // for the end
  }
}

/// Rank 2 is stopped with a rendezvous in its queue. Its peers go on with a replacement and use the memory
/// for something else; then it wakes up.
void wake_up_late(test_rank& self) {
  constexpr int zombie = 2, replacement = 3;
  bool replaces = self.rank() == replacement;
  int rank = replaces ? zombie : self.rank();
  ucx_process process(self, test_options(rank));
  if (!replaces) process.join(1, {0, 1, zombie});
  if (self.rank() == zombie) {
    process.events.take_tensors(2);
    process.events.intercept(
        [&](int from, const troupe::transport::tensor_tag& tag, const troupe::tensor& value) {
          process.link().send_tensor(from, tag, value);  // late, into what was the old generation
          process.link().send_control(from, 1, {});
          return false;
        });
    self.post(1);
    process.events.take_tensors(6);
    self.post(5);
    self.wait_for(0, 6);
    return;
  }
  std::vector<troupe::tensor> given;
  if (!replaces) {
    process.link().send_tensor(zombie, {1}, pattern(100000, 1));  // so that both ends are fully connected
    self.wait_for(zombie, 1);
    if (self.rank() == 0) {
      self.stop(zombie);
      self.post(2);
    }
    self.wait_for(0, 2);
    for (std::uint64_t i = 0; i < 3; ++i)
      process.link().send_tensor(zombie, {1, i}, given.emplace_back(pattern(3 << 20, i)));
  }
  process.join(2, {0, 1, replacement});
  for (auto& reused : given) std::ranges::fill(reused.values<std::uint8_t>(), std::uint8_t{7});
  auto traffic =
      std::make_shared<flood>(process, 2, without({0, 1, 2}, rank), static_cast<std::uint64_t>(rank));
  traffic->listen();
  self.post(3);
  for (int peer : {0, 1, replacement}) self.wait_for(peer, 3);
  traffic->start();
  traffic->wait_for(50);
  if (self.rank() == 0) self.resume(zombie);
  self.wait_for(zombie, 5);
  traffic->wait_for(300);
  expect(traffic->sound(), "the elements that were sent");
  for (auto& reused : given)
    expect(std::ranges::all_of(reused.values<std::uint8_t>(), [](auto byte) { return byte == 7; }),
           "own memory intact");
  self.post(6);
  for (int peer : {0, 1, replacement}) self.wait_for(peer, 6);
  traffic->stop();
  self.post(7);
  for (int peer : {0, 1, replacement}) self.wait_for(peer, 7);
}

/// Several generations without a loss: tensors in flight are let go of, the control connections stay.
void many_generations(test_rank& self) {
  ucx_process process(self);
  std::weak_ptr<void> watched;
  for (std::uint64_t generation = 1; generation <= 5; ++generation) {
    process.join_all(2 * generation);
    self.barrier(static_cast<int>(generation));
    int peer = 1 - self.rank();
    process.link().send_tensor(peer, {2 * generation - 1}, pattern(10, 0));
    process.link().send_tensor(peer, {2 * generation}, pattern(10, generation));
    process.link().send_control(peer, generation, {});
    auto received = process.events.take_tensors().front();
    expect(received.tag.generation == 2 * generation && same_bytes(received.value, pattern(10, generation)),
           "this one");
    expect(process.events.take_controls().front().generation == generation, "the control message");
    self.barrier(100 + static_cast<int>(generation));
    if (generation == 3) process.link().begin_generation(7);  // begun and never connected
  }
  expect(process.events.error_count() == 0, "no connection broke");
  expect(process.link().statistics().stale_frames == 5, "tensors of another generation counted");
  self.barrier(200);
}

/// A tensor that was sent is alive until the next generation is connected, though its worker is gone before.
void keep_tensors_in_flight(test_rank& self) {
  ucx_process process(self);
  process.join_all();
  self.barrier(1);
  if (self.rank() == 1) {
    self.post(2);
    self.wait_for(0, 3);
    process.join_all(2);
  } else {
    self.wait_for(1, 2);
    self.stop(1);
    auto memory = std::make_shared<std::vector<std::byte>>(1 << 20);
    std::weak_ptr<std::vector<std::byte>> watched = memory;
    auto* elements = memory->data();
    process.link().send_tensor(
        1, {1}, troupe::tensor::wrap(std::move(memory), elements, {1 << 20}, troupe::dtype::u8));
    expect(!watched.expired(), "in flight");
    process.begin(2);
    expect(!watched.expired(), "kept when the worker is gone");
    self.resume(1);
    self.post(3);
    process.connect(2, {0, 1});
    expect(watched.expired(), "released when the next generation is connected");
  }
  self.barrier(4);
}

/// Rank 1 has gone on to the next generation when rank 0 sends to it, which fails. It is no loss, whether
/// rank 0 follows or stays.
void send_to_advanced_peer(test_rank& self, bool follow) {
  ucx_process process(self);
  process.join_all();
  self.barrier(1);
  if (self.rank() == 1) {
    process.begin(2);
    self.post(2);
    if (follow) process.connect(2, {0, 1});
  } else {
    self.wait_for(1, 2);
    process.link().send_tensor(1, {1}, pattern(5000, 1));
    if (follow) {
      process.join_all(2);
    } else {
      auto is_judged = [&] {
        return process.link().statistics().ended_generation > 0 || process.events.error_count() > 0;
      };
      while (!is_judged()) ::usleep(1000);
      expect(process.events.error_count() == 0, "no loss of a rank that has said that its generation ended");
    }
  }
  if (follow) {
    process.link().send_tensor(1 - self.rank(), {2}, pattern(5000, 2));
    expect(same_bytes(process.events.take_tensors().front().value, pattern(5000, 2)), "what was sent");
    expect(process.events.error_count() == 0, "no error");
  }
  self.barrier(4);
}

/// The data address of rank 1 is that of a generation which it has ended before rank 0 connects to it.
void send_to_ended_worker(test_rank& self) {
  ucx_process process(self);
  process.begin(1);
  if (self.rank() == 1) {
    process.link().begin_generation(2);
    self.post(2);
  } else {
    self.wait_for(1, 2);
    process.connect(1, {0, 1});
    process.link().send_tensor(1, {1}, pattern(5000, 1));
    auto error = process.events.take_errors().front();
    bool names_data =
        error.cause.find("tensor") != error.cause.npos || error.cause.find("data") != error.cause.npos;
    expect(error.rank == 1 && names_data, "the cause: " + error.cause);
  }
  self.barrier(3);
}

double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

}  // namespace

TEST_CASE("a rank killed during many transfers is replaced, and the others continue with the right bytes",
          "[many]") {
  auto [transports, seeds] =
      GENERATE(table<std::string, int>({{"sysv,cma", 24}, {"sysv,tcp", 8}, {"tcp", 8}}));
  for (int seed = 1; seed <= seeds; ++seed) {
    CAPTURE(transports, seed);
    CHECK_NOTHROW(spawn_ranks(world + 1, [&](test_rank& self) {
      lose_one(self, seed % world, static_cast<std::uint64_t>(seed), transports);
    }));
  }
}

TEST_CASE("a connection to a process that just ended reports the loss of that peer only") {
  spawn_ranks(2, connect_to_ended_peer);
}

TEST_CASE("a process may end at any moment while connections are made") {
  auto seed = GENERATE(range(0, 25));
  spawn_ranks(2, [&](test_rank& self) { die_while_connecting(self, seed); });
}

TEST_CASE("a suspended process that resumes in a later generation does not disturb it") {
  spawn_ranks(4, wake_up_late);
}

TEST_CASE("generations follow each other without a loss") { spawn_ranks(2, many_generations); }

TEST_CASE("tensors not yet fetched at the end of their generation do not disturb the next one") {
  spawn_ranks(2, [](test_rank& self) {
    ucx_process process(self);
    constexpr std::uint64_t generations = 5, count = 40;
    for (std::uint64_t generation = 1; generation <= generations; ++generation) {
      process.join_all(generation);
      if (self.rank() == 0) {
        for (std::uint64_t i = 0; i < count; ++i)
          process.link().send_tensor(1, {generation, i}, pattern(1 << 20, generation * count + i));
        self.wait_for(1, static_cast<int>(generation));
      } else {
        // All of the last generation, of the others only what it takes to see that they come.
        for (std::uint64_t left = generation == generations ? count : 1; left > 0;) {
          auto received = process.events.take_tensors().front();
          auto seed = received.tag.generation * count + received.tag.step;
          expect(same_bytes(received.value, pattern(1 << 20, seed)), "what was sent");
          if (received.tag.generation == generation) --left;
        }
        self.post(static_cast<int>(generation));
      }
    }
    // Rank 0 may end a generation while rank 1, still in it, fetches a tensor: an error of that generation.
    expect(!process.events.has_errors_of(generations), "no connection broke");
    self.barrier(100);
  });
}

TEST_CASE("a tensor in flight outlives its generation's worker until the next generation is connected") {
  spawn_ranks(2, keep_tensors_in_flight);
}

TEST_CASE("a tensor that cannot be sent though its generation goes on is an error") {
  spawn_ranks(2, send_to_ended_worker);
}

TEST_CASE("a peer that has said that its generation ended is not lost") {
  auto follow = GENERATE(false, true);
  spawn_ranks(2, [&](test_rank& self) { send_to_advanced_peer(self, follow); });
}

TEST_CASE("an idle transport sleeps") {
  spawn_ranks(2, [](test_rank& self) {
    ucx_process process(self);
    process.join_all();
    process.link().send_tensor(1 - self.rank(), {1}, pattern(1 << 20, 1));
    process.events.take_tensors();
    self.barrier(1);
    auto before = cpu_seconds();
    ::usleep(500000);
    expect(cpu_seconds() - before < 0.25, "much less processor time than time");
    self.barrier(2);
  });
}
