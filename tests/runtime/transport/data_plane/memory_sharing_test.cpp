#include "troupe/transport/data_plane/memory_sharing.hpp"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::transport;

namespace {

/// A process, rank 0 or 1, whose peer is the other one.
struct process {
  explicit process(int own_rank) : rank(own_rank) {}
  void know(const process& peer) { sharing.connect(peer.rank, {::getpid(), peer.heap.name()}); }

  int rank;
  shared_memory::shared_heap heap{shared_memory::freed_segments::returned};
  memory_sharing sharing{heap};
};

struct two_processes {
  two_processes() {
    owner.know(reader);
    reader.know(owner);
  }
  /// What each has to tell the other one arrives. Returns how many notices there were.
  std::size_t deliver() {
    std::size_t count = 0;
    for (auto [from, to] : {std::pair(&owner, &reader), std::pair(&reader, &owner)})
      for (const auto& each : from->sharing.take_notices()) {
        CHECK(each.to_rank == to->rank);
        to->sharing.on_notice(from->rank, each.what);
        ++count;
      }
    return count;
  }
  shared_place place_of(const tensor& x) const {
    auto found = owner.sharing.place_of(x.bytes());
    REQUIRE(found.has_value());
    return *found;
  }
  bool reads(const shared_place& place) const {
    return reader.sharing.refer_to(0, place, {dtype::f32, {1}}).has_value();
  }
  process owner{0}, reader{1};
};

}  // namespace

TEST_CASE("an owner knows that its memory is read in place once the peer has told so") {
  two_processes both;
  auto x = both.owner.heap.empty({1000}, dtype::f32);
  auto place = both.place_of(x);
  both.reader.sharing.on_offer(0, place);
  CHECK(both.reader.sharing.has_notices());
  CHECK_FALSE(both.owner.sharing.is_read_by(1, place));
  CHECK(both.deliver() == 1);
  CHECK(both.owner.sharing.is_read_by(1, place));
  CHECK(both.reads(place));
  both.reader.sharing.on_offer(0, place);
  CHECK(both.deliver() == 0);  // told once
}

TEST_CASE("a peer is told that memory which it reads was freed, and no other peer") {
  two_processes both;
  both.owner.sharing.connect(2, {::getpid(), both.reader.heap.name()});
  auto x = both.owner.heap.empty({1000}, dtype::f32);
  auto place = both.place_of(x);
  both.reader.sharing.on_offer(0, place);
  both.deliver();
  x = {};
  CHECK(both.owner.sharing.has_notices());
  CHECK(both.deliver() == 1);
  CHECK_FALSE(both.reads(place));
  CHECK_FALSE(both.owner.sharing.is_read_by(1, place));
  CHECK_FALSE(both.owner.sharing.has_notices());
}

TEST_CASE("memory that was freed before the peer told that it reads it is given up as well") {
  two_processes both;
  auto x = both.owner.heap.empty({1000}, dtype::f32);
  auto place = both.place_of(x);
  both.reader.sharing.on_offer(0, place);
  x = {};
  CHECK(both.owner.sharing.take_notices().empty());
  CHECK(both.reads(place));
  CHECK(both.deliver() == 1);  // mapped
  CHECK(both.deliver() == 1);  // freed
  CHECK_FALSE(both.reads(place));
  CHECK_FALSE(both.owner.sharing.is_read_by(1, place));
}

TEST_CASE("memory of a rank that is not connected yet is mapped at its next offer") {
  process owner(0), reader(1);
  auto x = owner.heap.empty({1000}, dtype::f32);
  auto place = owner.sharing.place_of(std::as_const(x).bytes());
  REQUIRE(place.has_value());
  reader.sharing.on_offer(0, *place);
  CHECK_FALSE(reader.sharing.has_notices());
  reader.know(owner);
  reader.sharing.on_offer(0, *place);
  CHECK(reader.sharing.has_notices());
}

TEST_CASE("only elements of the heap have a place") {
  two_processes both;
  auto x = both.owner.heap.empty({1000}, dtype::f32);
  auto other = tensor::empty({1000});
  CHECK(both.place_of(x.rows(100, 10)).offset == 400);
  CHECK_FALSE(both.owner.sharing.place_of(std::as_const(other).bytes()).has_value());
  CHECK_FALSE(both.owner.sharing.place_of(std::as_const(x).bytes().first(0)).has_value());
}
