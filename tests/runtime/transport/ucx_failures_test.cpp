#include <sys/resource.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <random>
#include <thread>

#include "ucx_node.hpp"

using namespace troupe::testing;

namespace {

/// Keeps a number of tensors on the way to every peer by answering each one that comes, and checks what
/// comes. Shared, because a tensor may still come when a test is done with it; the node must outlive it.
class flood : public std::enable_shared_from_this<flood> {
 public:
  flood(ucx_node& node, std::uint64_t generation, std::vector<int> peers, std::uint64_t seed)
      : node_(node), generation_(generation), peers_(std::move(peers)), random_(seed) {}

  void listen() {
    node_.events.intercept(
        [self = shared_from_this()](int from, const troupe::tensor_tag& tag, const troupe::tensor& value) {
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
    node_.events.wait_until([&] { return received_ >= count; });
  }
  bool sound() const { return sound_; }

 private:
  bool on_tensor(int from, const troupe::tensor_tag& tag, const troupe::tensor& value) {
    if (tag.generation != generation_) return true;
    if (!same_bytes(value, pattern(value.size_bytes(), tag.step))) sound_ = false;
    ++received_;
    node_.events.poke();
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
    node_.link().send_tensor(peer, {generation_, seed}, pattern(size, seed));
  }

  ucx_node& node_;
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

std::shared_ptr<flood> make_flood(ucx_node& node, std::uint64_t generation, int rank, std::uint64_t seed) {
  auto made = std::make_shared<flood>(node, generation, without({0, 1, 2, 3}, rank),
                                      seed + static_cast<std::uint64_t>(rank));
  made->listen();
  return made;
}

void flood_after(ucx_node& node, int rank, const std::vector<int>& processes, std::uint64_t seed,
                 test_rank& self) {
  auto second = make_flood(node, 2, rank, seed * 100);
  node.connect(2, processes);
  second->start();
  second->wait_for(200);
  expect(second->sound(), "the elements that were sent in the second generation");
  self.post(50);
  for (int process : processes) self.wait_for(process, 50);
  second->stop();
  self.post(51);
  for (int process : processes) self.wait_for(process, 51);
}

/// In one generation everybody floods everybody, one rank is killed, a new process takes its place in the
/// next.
void lose_one(test_rank& self, int victim, std::uint64_t seed) {
  auto processes = std::vector<int>{0, 1, 2, 3};
  auto next_processes = processes;
  next_processes[static_cast<std::size_t>(victim)] = spare;
  int rank = self.rank() == spare ? victim : self.rank();
  ucx_node node(self, test_options(rank));
  if (self.rank() != spare) {
    auto first = make_flood(node, 1, rank, seed * 10);
    node.join(1, processes);
    first->start();
    if (rank == (victim + 1) % world) {
      first->wait_for(static_cast<int>(seed * 37 % 500));
      self.kill(victim);
    }
    node.events.wait_for_error(victim);
    first->stop();
    expect(first->sound(), "the elements that were sent");
    node.begin(2);
    flood_after(node, rank, next_processes, seed, self);
    expect(node.events.take_errors().size() == 1, "one error");
    expect(node.link().statistics().bad_frames == 0, "no bad frame");
  } else {
    node.begin(2);
    flood_after(node, rank, next_processes, seed, self);
  }
}

}  // namespace

TEST_CASE("a rank killed in a flood of tensors is replaced and the others go on with the right bytes") {
  auto seed = GENERATE(range(1, 25));
  spawn_ranks(world + 1,
              [&](test_rank& self) { lose_one(self, seed % world, static_cast<std::uint64_t>(seed)); });
}
