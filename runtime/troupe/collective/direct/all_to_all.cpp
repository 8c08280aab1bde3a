#include "troupe/collective/direct/algorithms.hpp"
#include "troupe/collective/direct/share.hpp"

namespace troupe::direct {
namespace {

std::size_t part_bytes(const meeting& at) {
  return static_cast<std::size_t>(at.what().parts[0]) * at.element_bytes();
}

algorithm all_to_all_small(meeting at) {
  auto size = part_bytes(at);
  auto input = std::span<const std::byte>(at.what().input.bytes());
  auto part = [&](int to) { return input.subspan(static_cast<std::size_t>(to) * size, size); };
  at.come_with(part);
  co_await until([&] { return at.everyone_is_here(); });
  auto output = at.what().output_bytes();
  for (int i = 0; i < at.num_members(); ++i)
    copy_bytes(i == at.member() ? part(i).data() : at.left_by(i, size),
               output.data() + static_cast<std::size_t>(i) * size, size, store_kind::cached);
}

// Everybody reads its part of all inputs, beginning with its right neighbour, so that not all read one.
algorithm all_to_all_large(meeting at) {
  at.come_with_tensors(exposed::input);
  co_await until([&] { return at.everyone_is_here(); });
  at.reach();
  auto size = part_bytes(at);
  auto output = at.what().output_bytes();
  for (int i = 0; i < at.num_members(); ++i) {
    auto from = (at.member() + i + 1) % at.num_members();
    copy_bytes(at.input_of(from) + static_cast<std::size_t>(at.member()) * size,
               output.data() + static_cast<std::size_t>(from) * size, size, store_for_fetched(output.size()));
  }
  at.pass();
  co_await until([&] { return at.everyone_passed(); });
}

}  // namespace

algorithm all_to_all(meeting at) {
  return is_small(at, at.what().parts[0]) ? all_to_all_small(std::move(at)) : all_to_all_large(std::move(at));
}

}  // namespace troupe::direct
