#include "troupe/collective/direct/algorithms.hpp"
#include "troupe/collective/direct/share.hpp"

namespace troupe::direct {
namespace {

std::size_t offset_of(const meeting& at, int member) {
  return static_cast<std::size_t>(part_begin(at.what(), member)) * at.element_bytes();
}
std::size_t part_bytes(const meeting& at, int member) {
  return static_cast<std::size_t>(part_of(at.what(), member).count) * at.element_bytes();
}

algorithm all_gather_small(meeting at) {
  auto own = at.what().input.bytes();
  at.come_with([&](int) { return own; });
  auto output = at.what().output_bytes();
  copy_bytes(own.data(), output.data() + offset_of(at, at.member()), own.size(), store_kind::cached);
  co_await until([&] { return at.everyone_is_here(); });
  for (int i = 0; i < at.num_members(); ++i)
    if (i != at.member())
      copy_bytes(at.left_by(i, part_bytes(at, i)), output.data() + offset_of(at, i), part_bytes(at, i),
                 store_kind::cached);
}

// Everybody writes its part to all outputs: it is read from memory once. The input is nobody else's business.
algorithm all_gather_large(meeting at) {
  at.come_with_tensors(exposed::output);
  co_await until([&] { return at.everyone_is_here(); });
  at.reach();
  auto own = at.what().input.bytes();
  auto store = store_for(own.size() * static_cast<std::size_t>(at.num_members()));
  constexpr std::size_t block = 16384;  // stays in the innermost cache while it is written n times
  for (std::size_t first = 0; first < own.size(); first += block) {
    auto size = std::min(block, own.size() - first);
    for (int i = 0; i < at.num_members(); ++i) {
      auto to = (at.member() + i) % at.num_members();
      auto* target = at.output_of(to) + offset_of(at, at.member()) + first;
      if (target != own.data() + first) copy_bytes(own.data() + first, target, size, store);
    }
  }
  at.pass();
  co_await until([&] { return at.everyone_passed(); });
  at.take_output();
}

}  // namespace

algorithm all_gather(meeting at) {
  const auto& parts = at.what().parts;
  auto largest = *std::max_element(parts.begin(), parts.end());
  return is_small(at, largest) ? all_gather_small(std::move(at)) : all_gather_large(std::move(at));
}

}  // namespace troupe::direct
