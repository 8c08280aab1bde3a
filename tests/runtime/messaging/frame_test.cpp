#include "troupe/messaging/frame.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>

using troupe::messaging::frame_fault;
using troupe::messaging::frame_kind;

namespace {

std::vector<std::byte> bytes(std::size_t count, int seed) {
  std::vector<std::byte> result(count);
  for (std::size_t i = 0; i < count; ++i)
    result[i] = static_cast<std::byte>(i * 31 + static_cast<std::size_t>(seed));
  return result;
}

const troupe::messaging::frame_authenticator key(bytes(32, 1));
const auto body = bytes(100, 3);
const auto extension = bytes(9, 4);

troupe::messaging::frame_header header(frame_kind kind) {
  return {kind, 2, 3, 0x0102030405060708, 42, body.size()};
}

std::vector<std::byte> sealed(frame_kind kind = frame_kind::control) {
  return troupe::messaging::seal_frame(key, header(kind), extension,
                                       kind == frame_kind::control ? body : std::vector<std::byte>());
}

/// The fault of `head`, or nothing if it opens.
std::optional<frame_fault> fault_of(std::span<const std::byte> head,
                                    std::span<const std::byte> arrived = body,
                                    const troupe::messaging::frame_authenticator& with = key) {
  auto opened = troupe::messaging::open_frame(with, head, arrived.size(), arrived);
  if (auto* fault = std::get_if<frame_fault>(&opened)) return *fault;
  return std::nullopt;
}

}  // namespace

TEST_CASE("a sealed frame opens with its header and extension") {
  for (auto kind : {frame_kind::control, frame_kind::tensor}) {
    auto head = sealed(kind);
    CHECK(head.size() == troupe::messaging::smallest_frame_head_bytes + extension.size());
    auto opened = troupe::messaging::open_frame(key, head, body.size(), body);
    REQUIRE(std::holds_alternative<troupe::messaging::frame_head>(opened));
    CHECK(std::get<troupe::messaging::frame_head>(opened).header == header(kind));
    CHECK(std::ranges::equal(std::get<troupe::messaging::frame_head>(opened).extension, extension));
  }
}

TEST_CASE("the code covers a control body and not a tensor body") {
  auto changed = body;
  changed[50] ^= std::byte{1};
  CHECK(fault_of(sealed(frame_kind::control), changed) == frame_fault::authentication);
  CHECK(fault_of(sealed(frame_kind::tensor), changed) == std::nullopt);
}

TEST_CASE("no bit of a head may change") {
  for (auto kind : {frame_kind::control, frame_kind::tensor}) {
    auto head = sealed(kind);
    for (std::size_t bit = 0; bit < head.size() * 8; ++bit) {
      auto changed = head;
      changed[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
      CHECK(fault_of(changed).has_value());
    }
  }
}

TEST_CASE("each fault has its name") {
  auto head = sealed();
  CHECK(fault_of(std::span(head).first(troupe::messaging::smallest_frame_head_bytes - 1)) ==
        frame_fault::truncated);
  CHECK(fault_of(std::span(head).first(head.size() - 1)) == frame_fault::length);
  auto longer = head;
  longer.push_back(std::byte{0});
  CHECK(fault_of(longer) == frame_fault::length);
  CHECK(fault_of(head, std::span(body).first(99)) == frame_fault::length);
  auto changed = head;
  changed[0] = std::byte{'X'};
  CHECK(fault_of(changed) == frame_fault::magic);
  changed = head;
  changed[4] = static_cast<std::byte>(troupe::messaging::frame_version + 1);
  CHECK(fault_of(changed) == frame_fault::version);
  changed = head;
  changed[5] = std::byte{4};
  CHECK(fault_of(changed) == frame_fault::kind);
  CHECK(to_string(frame_fault::authentication) == "not authentic");
}

TEST_CASE("the type and length of a frame are read from its first bytes") {
  auto head = sealed();
  auto start = std::span(head).first<troupe::messaging::frame_header_bytes>();
  auto measured = troupe::messaging::measure_frame(start);
  REQUIRE(std::holds_alternative<troupe::messaging::frame_measure>(measured));
  CHECK(std::get<troupe::messaging::frame_measure>(measured).head_bytes == head.size());
  CHECK(std::get<troupe::messaging::frame_measure>(measured).body_bytes == body.size());
  for (std::size_t at : {0U, 4U, 5U}) {
    auto changed = head;
    changed[at] ^= std::byte{0x55};
    CHECK(std::holds_alternative<frame_fault>(
        troupe::messaging::measure_frame(std::span(changed).first<troupe::messaging::frame_header_bytes>())));
  }
}

TEST_CASE("another secret does not open a frame") {
  CHECK(fault_of(sealed(), body, troupe::messaging::frame_authenticator(bytes(32, 2))) ==
        frame_fault::authentication);
}

TEST_CASE("a short secret and an oversized extension are refused as the caller's errors") {
  CHECK_THROWS_AS(troupe::messaging::frame_authenticator(bytes(15, 0)), std::invalid_argument);
  CHECK_THROWS_AS(troupe::messaging::seal_frame(key, header(frame_kind::tensor), bytes(65536, 0), {}),
                  std::invalid_argument);
}

TEST_CASE("no other bytes open as a frame") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 50000; ++round) {
    auto head = round % 2 == 0 ? sealed() : bytes(random() % 200, static_cast<int>(random() % 256));
    auto original = head;
    head.resize(random() % 200);
    for (auto changes = random() % 6; changes > 0 && !head.empty(); --changes)
      head[random() % head.size()] = static_cast<std::byte>(random());
    if (round % 2 == 0 && head == original) continue;
    REQUIRE(fault_of(head).has_value());
  }
}
