#include "troupe/tensor/detail/caching_allocator.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <set>
#include <stdexcept>

using troupe::caching_allocator;
using troupe::memory_category;
using enum troupe::block_reuse;

namespace {

constexpr std::size_t size = 4096;

/// Memory of a device that comes to what is queued when `num_done` says so, with a limit of blocks.
class queued_memory final : public troupe::memory_resource {
 public:
  ~queued_memory() override {
    for (auto* each : live_) std::free(each);
  }
  void* allocate(std::size_t size_bytes) override {
    if (live_.size() >= most_blocks) return nullptr;
    return *live_.insert(std::aligned_alloc(64, size_bytes)).first;
  }
  void deallocate(void* memory, std::size_t) override {
    live_.erase(memory);
    std::free(memory);
  }
  std::unique_ptr<troupe::stream_event> used_until() override {
    if (fails) throw std::runtime_error("no event");
    return std::make_unique<event>(*num_done_, num_queued);
  }

  void come_to(int number) { *num_done_ = number; }

  std::size_t most_blocks = 16;
  int num_queued = 0;
  bool fails = false;

 private:
  class event final : public troupe::stream_event {
   public:
    event(const int& num_done, int number) : num_done_(num_done), number_(number) {}
    bool is_reached() const override { return num_done_ >= number_; }
    void wait() const override { throw std::logic_error("the allocator waits"); }
    std::chrono::nanoseconds since(const stream_event&) const override { return {}; }

   private:
    const int& num_done_;
    int number_;
  };

  std::set<void*> live_;
  std::unique_ptr<int> num_done_ = std::make_unique<int>(0);
};

/// Blocks of `size` of one allocator.
struct blocks {
  void* take(troupe::block_reuse reuse) { return from.allocate(size, memory_category::other, reuse); }
  void free(void* block, troupe::block_reuse reuse) {
    from.deallocate(block, size, memory_category::other, reuse);
  }

  /// Not so where each block is freed at once, for a tool that watches memory.
  bool are_kept() {
    free(take(in_stream_order), in_stream_order);
    return from.statistics().cached > 0;
  }

  queued_memory memory;
  caching_allocator from{memory};
};

}  // namespace

TEST_CASE("an idle block is one that no queued work uses") {
  blocks all;
  if (!all.are_kept()) SKIP("blocks are freed at once");
  all.memory.num_queued = 1;
  auto* first = all.take(when_idle);
  all.free(first, when_idle);
  auto* second = all.take(when_idle);
  CHECK(second != first);
  all.memory.come_to(1);
  CHECK(all.take(when_idle) == first);
  auto* ordered = all.take(in_stream_order);
  all.free(ordered, in_stream_order);
  CHECK(all.take(when_idle) != ordered);
  CHECK(all.take(in_stream_order) == ordered);
}

TEST_CASE("a block of which nothing is known yet is not idle") {
  blocks all;
  if (!all.are_kept()) SKIP("blocks are freed at once");
  auto* first = all.take(when_idle);
  all.memory.fails = true;
  all.free(first, when_idle);
  CHECK_THROWS_AS(all.take(when_idle), std::runtime_error);
  all.memory.fails = false;
  all.memory.num_queued = 2;
  CHECK(all.take(when_idle) != first);
  all.memory.come_to(2);
  CHECK(all.take(when_idle) == first);
}

TEST_CASE("what is freed counts as cached until it serves again or goes to the system") {
  blocks all;
  if (!all.are_kept()) SKIP("blocks are freed at once");
  all.memory.num_queued = 1;
  all.free(all.take(when_idle), when_idle);
  all.free(all.take(in_stream_order), in_stream_order);
  auto freed = all.from.statistics();
  CHECK(freed.current == 0);
  CHECK(freed.cached == 2 * troupe::block_bytes(size));
  all.from.release_cached();
  CHECK(all.from.statistics().cached == 0);
}

TEST_CASE("where there is no more memory, what is cached is given back, idle or not") {
  blocks all;
  all.memory.num_queued = 1;
  all.memory.most_blocks = 1;
  all.free(all.take(when_idle), when_idle);
  auto* other = all.from.allocate(2 * size, memory_category::other, when_idle);
  CHECK(other != nullptr);
  CHECK_THROWS_AS(all.take(when_idle), std::bad_alloc);
  all.from.deallocate(other, 2 * size, memory_category::other, when_idle);
}

TEST_CASE("a block that is not idle yet serves requests in stream order") {
  blocks all;
  if (!all.are_kept()) SKIP("blocks are freed at once");
  all.take(in_stream_order);  // the one that are_kept() freed
  all.memory.num_queued = 1;
  auto* block = all.take(when_idle);
  all.free(block, when_idle);
  CHECK(all.take(in_stream_order) == block);
  CHECK(all.from.statistics().cached == 0);
  all.memory.come_to(1);
  CHECK(all.take(when_idle) != block);
}

TEST_CASE("idle blocks serve requests in stream order too") {
  blocks all;
  if (!all.are_kept()) SKIP("blocks are freed at once");
  auto* first = all.take(when_idle);
  all.free(first, when_idle);
  auto* second = all.take(when_idle);  // finds the first one idle
  REQUIRE(second == first);
  all.free(second, when_idle);
  all.take(in_stream_order);                                       // the one that are_kept() freed
  all.from.allocate(2 * size, memory_category::other, when_idle);  // looks for what is idle by now
  CHECK(all.take(in_stream_order) == first);
}
