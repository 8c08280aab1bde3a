#include "troupe/shared_memory/shared_heap.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "troupe/tensor/memory_account.hpp"

using namespace troupe;
using namespace troupe::shared_memory;

namespace {

/// The bytes of a tensor as another process with its segment sees them.
std::unique_ptr<mapping> seen_by_others(const shared_heap& heap, const tensor& x) {
  auto location = heap.locate(x.bytes());
  REQUIRE(location.has_value());
  return map_received_segment(location->segment->fd.get(), location->segment->size_bytes);
}

}  // namespace

TEST_CASE("revoked bytes keep their contents and are no longer shared with other processes") {
  shared_heap heap;
  auto x = heap.allocate({10000}, dtype::f32);
  std::ranges::fill(x.values<float>(), 3.0F);
  auto before = heap.locate(x.bytes());
  auto old = seen_by_others(heap, x);
  auto* address = x.bytes().data();
  heap.revoke(x.bytes());
  CHECK(x.bytes().data() == address);
  std::fill_n(old->first(), 40000, std::byte{255});
  CHECK(std::ranges::all_of(x.values<float>(), [](float each) { return each == 3; }));
  auto after = heap.locate(x.bytes());
  REQUIRE(after.has_value());
  CHECK(after->segment->id != before->segment->id);
  x.values<float>()[7] = 5;
  CHECK(reinterpret_cast<float*>(seen_by_others(heap, x)->first())[7] == 5);
  CHECK(heap.statistics().num_revoked == 1);
}

TEST_CASE("revoking a part of a tensor leaves the rest shared") {
  shared_heap heap;
  auto x = heap.allocate({4, 4096}, dtype::f32);
  for (std::int64_t i = 0; i < 4; ++i) std::ranges::fill(x.rows(i, 1).values<float>(), static_cast<float>(i));
  auto first = heap.locate(x.rows(0, 1).bytes())->segment->id;
  heap.revoke(x.rows(1, 2).bytes());
  CHECK(heap.locate(x.rows(0, 1).bytes())->segment->id == first);
  CHECK(heap.locate(x.rows(3, 1).bytes())->segment->id == first);
  CHECK(heap.locate(x.rows(1, 1).bytes())->segment->id != first);
  CHECK(heap.locate(x.rows(2, 1).bytes())->offset == 4096 * 4);
  CHECK_FALSE(heap.locate(x.bytes()).has_value());
  for (std::int64_t i = 0; i < 4; ++i) CHECK(x.rows(i, 1).values<float>()[4095] == static_cast<float>(i));
  CHECK(heap.take_released().empty());
  x = {};
  CHECK(heap.take_released().size() == 2);
  CHECK(heap.statistics().current == 0);
}

TEST_CASE("a tensor allocated from the cache again is zero, and tensors outlive the heap") {
  tensor last;
  {
    shared_heap heap;
    std::ranges::fill(heap.allocate({5000}, dtype::i32).values<std::int32_t>(), 9);
    last = heap.allocate({5000}, dtype::i32);
    CHECK(heap.statistics().num_from_system == 1);
  }
  CHECK(std::ranges::all_of(last.values<std::int32_t>(), [](std::int32_t each) { return each == 0; }));
  last.values<std::int32_t>()[4999] = 1;
}

TEST_CASE("revoking without file descriptors leaves a tensor that only this process can access") {
  shared_heap heap;
  auto x = heap.allocate({5000}, dtype::f32);
  std::ranges::fill(x.values<float>(), 2.0F);
  rlimit limit{}, none{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  none = {0, limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  heap.revoke(x.bytes());
  ::setrlimit(RLIMIT_NOFILE, &limit);
  CHECK_FALSE(heap.locate(x.bytes()).has_value());
  CHECK(x.values<float>()[4999] == 2);
}

TEST_CASE("tensors of a heap are charged to the account of who allocates them") {
  auto account = memory_account::make();
  shared_heap heap;
  tensor x;
  {
    account_scope charged(account);
    x = heap.empty({10000}, dtype::f32);
  }
  CHECK(account.statistics().current >= 40000);
  x = {};  // its memory is kept for the next one
  CHECK(account.statistics().current == 0);
}
