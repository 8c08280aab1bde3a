#include "troupe/shared_memory/peer_heap.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <numeric>

using namespace troupe;
using namespace troupe::shared_memory;

namespace {

/// In what a process tells of a tensor of its heap.
struct told {
  std::uint64_t id = 0, offset = 0;
  int fd = -1;
  std::size_t size_bytes = 0;
};

told told_of(const shared_heap& heap, const tensor& x) {
  auto found = heap.locate(x.bytes());
  REQUIRE(found.has_value());
  return {found->segment->id, found->offset, found->segment->fd.get(), found->segment->size_bytes};
}

tensor counting(shared_heap& heap, std::int64_t count) {
  auto x = heap.empty({count}, dtype::f32);
  auto values = x.values<float>();
  std::iota(values.begin(), values.end(), 0.0F);
  return x;
}

}  // namespace

TEST_CASE("what one process writes to its heap another one reads in place") {
  shared_heap heap;
  auto x = counting(heap, 10000);
  auto at = told_of(heap, x.rows(100, 5000));
  auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    peer_heap peer({::getppid(), heap.name()});
    bool reads = peer.map(at.id, at.fd, at.size_bytes);
    auto seen = reads ? peer.refer_to(at.id, at.offset, {50, 100}, dtype::f32) : std::nullopt;
    peer.unmap(at.id);  // the tensor keeps it mapped
    auto values = seen ? std::as_const(*seen).values<float>() : std::span<const float>();
    ::_exit(values.size() == 5000 && values.front() == 100 && values.back() == 5099 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a peer's segment is the same memory, and stays after the peer has freed it") {
  shared_heap heap(freed_segments::returned);
  auto x = counting(heap, 10000);
  auto at = told_of(heap, x);
  peer_heap peer({::getpid(), heap.name()});
  REQUIRE(peer.map(at.id, at.fd, at.size_bytes));
  auto seen = peer.refer_to(at.id, at.offset, {10000}, dtype::f32);
  REQUIRE(seen.has_value());
  x.values<float>()[7] = -1;
  CHECK(std::as_const(*seen).values<float>()[7] == -1);
  x = {};
  CHECK(heap.statistics().current == 0);
  CHECK(heap.statistics().cached == 0);
  CHECK(heap.take_released() == std::vector{at.id});
  auto next = counting(heap, 10000);
  std::ranges::fill(next.values<float>(), -2.0F);
  CHECK(std::as_const(*seen).values<float>()[9999] == 9999);
}

TEST_CASE("only the segment that a peer told of is mapped") {
  shared_heap heap;
  auto x = counting(heap, 10000);
  auto at = told_of(heap, x);
  heap_address own{::getpid(), heap.name()};
  CHECK_FALSE(peer_heap({own.process, heap_name{}}).map(at.id, at.fd, at.size_bytes));
  CHECK_FALSE(peer_heap({1 << 30, own.name}).map(at.id, at.fd, at.size_bytes));
  CHECK_FALSE(peer_heap(own).map(at.id + 1, at.fd, at.size_bytes));
  CHECK_FALSE(peer_heap(own).map(at.id, STDIN_FILENO, at.size_bytes));
  CHECK_FALSE(peer_heap(own).map(at.id, at.fd, at.size_bytes + page_bytes));
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  CHECK_FALSE(peer_heap(own).map(at.id, pipe[0], at.size_bytes));
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_CASE("what does not lie in a peer's segment is refused") {
  shared_heap heap;
  auto x = counting(heap, 1024);
  auto at = told_of(heap, x);
  REQUIRE(at.size_bytes == 4096);
  peer_heap peer({::getpid(), heap.name()});
  CHECK_FALSE(peer.refer_to(at.id, 0, {1}, dtype::f32).has_value());
  REQUIRE(peer.map(at.id, at.fd, at.size_bytes));
  CHECK(peer.refer_to(at.id, 4092, {1}, dtype::f32).has_value());
  CHECK_FALSE(peer.refer_to(at.id, 4093, {1}, dtype::f32).has_value());
  CHECK_FALSE(peer.refer_to(at.id, 4096, {1}, dtype::f32).has_value());
  CHECK_FALSE(peer.refer_to(at.id, 4092, {2}, dtype::f32).has_value());
  CHECK_FALSE(peer.refer_to(at.id, 2, {1}, dtype::f32).has_value());
  CHECK_FALSE(peer.refer_to(at.id, ~std::uint64_t{3}, {2}, dtype::f32).has_value());
  CHECK_FALSE(peer.refer_to(at.id, 0, {std::int64_t{1} << 57}, dtype::f32).has_value());
  peer.unmap(at.id);
  CHECK_FALSE(peer.refer_to(at.id, 0, {1}, dtype::f32).has_value());
}
