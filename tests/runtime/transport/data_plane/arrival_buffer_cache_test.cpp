#include "troupe/transport/data_plane/arrival_buffer_cache.hpp"

#include <catch2/catch_test_macros.hpp>

#include "troupe/transport/tensor_header.hpp"

namespace {

/// The layout of a tensor of i64, as a header carries it.
std::vector<std::byte> layout_of(const troupe::shape& extents) {
  std::vector<std::byte> bytes(troupe::transport::tensor_header_bytes(extents, {}));
  troupe::wire::byte_writer writer(bytes);
  troupe::transport::write_tensor_header({}, troupe::dtype::i64, extents, {}, writer);
  troupe::transport::tensor_tag tag;
  troupe::transport::tensor_header_options options;
  auto layout = troupe::transport::read_tensor_header(bytes, tag, options);
  return {layout.begin(), layout.end()};
}

}  // namespace

TEST_CASE("each arriving tensor gets its own buffer of its layout, allocated in advance or not") {
  troupe::transport::arrival_buffer_cache room;
  std::vector<troupe::tensor> taken;
  for (const auto& extents : {troupe::shape{2, 3}, {2, 3}, {2, 3}, {6}, {2, 3}, {6}, {6}, {6}, {6}}) {
    troupe::tensor value;
    REQUIRE(room.take(layout_of(extents), 48, value));
    CHECK(value.shape() == extents);
    CHECK(value.dtype() == troupe::dtype::i64);
    for (const auto& other : taken) CHECK(other.bytes().data() != value.bytes().data());
    taken.push_back(value);
    room.prepare();
    room.prepare();
  }
}

TEST_CASE("the buffer for the third tensor of a kind is allocated before it arrives, and only once") {
  troupe::transport::arrival_buffer_cache room;
  troupe::tensor value;
  auto current = [] { return troupe::memory_of({}).current; };
  for (int i = 0; i < 2; ++i) {
    auto before = current();
    room.prepare();
    CHECK(current() == before);
    REQUIRE(room.take(layout_of({1000}), 8000, value));
  }
  auto without = current();
  room.prepare();
  auto with = current();
  CHECK(with > without);
  room.prepare();
  CHECK(current() == with);
  value = {};
  REQUIRE(room.take(layout_of({1000}), 8000, value));
  CHECK(current() == without);
}

TEST_CASE("no buffer is given for impossible tensors, or for ones that differ from the announcement") {
  troupe::transport::arrival_buffer_cache room;
  troupe::tensor value;
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(room.take(layout_of({2, 3}), 47, value));
    CHECK_FALSE(room.take(std::vector<std::byte>(2, std::byte{200}), 48, value));
    CHECK_FALSE(value.defined());
    room.prepare();
  }
}
