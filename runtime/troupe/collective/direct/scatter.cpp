#include "troupe/collective/direct/algorithms.hpp"
#include "troupe/collective/direct/share.hpp"

namespace troupe::direct {
namespace {

std::size_t part_bytes(const meeting& at) {
  return static_cast<std::size_t>(at.what().parts[0]) * at.element_bytes();
}

algorithm scatter_small(meeting at) {
  auto root = at.what().signature.root;
  auto size = part_bytes(at);
  auto input = at.what().input;
  auto part = [&](int to) {
    return std::span(std::as_const(input).bytes()).subspan(static_cast<std::size_t>(to) * size, size);
  };
  at.come_with([&](int to) { return at.member() == root ? part(to) : std::span<const std::byte>(); });
  co_await until([&] { return at.everyone_is_here(); });
  auto output = at.what().output_bytes();
  copy_bytes(at.member() == root ? part(root).data() : at.left_by(root, size), output.data(), size,
             store_kind::cached);
}

// Everybody reads its part of the root's input.
algorithm scatter_large(meeting at) {
  at.come_with_tensors(exposed::input);
  co_await until([&] { return at.everyone_is_here(); });
  at.reach();
  auto size = part_bytes(at);
  auto output = at.what().output_bytes();
  copy_bytes(at.input_of(at.what().signature.root) + static_cast<std::size_t>(at.member()) * size,
             output.data(), size, store_for_fetched(size));
  at.pass();
  co_await until([&] { return at.everyone_passed(); });
}

}  // namespace

algorithm scatter(meeting at) {
  return is_small(at, at.what().parts[0]) ? scatter_small(std::move(at)) : scatter_large(std::move(at));
}

}  // namespace troupe::direct
