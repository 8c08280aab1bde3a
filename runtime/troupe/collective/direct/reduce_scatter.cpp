#include "troupe/collective/direct/algorithms.hpp"
#include "troupe/collective/direct/reduce_share.hpp"
#include "troupe/collective/direct/share.hpp"

namespace troupe::direct {
namespace {

std::span<const std::byte> part_bytes(const meeting& at, int member) {
  auto part = part_of(at.what(), member);
  return at.what().input.bytes().subspan(static_cast<std::size_t>(part.first) * at.element_bytes(),
                                         static_cast<std::size_t>(part.count) * at.element_bytes());
}

algorithm reduce_scatter_small(meeting at) {
  at.come_with([&](int to) { return part_bytes(at, to); });
  co_await until([&] { return at.everyone_is_here(); });
  auto own = part_bytes(at, at.member());
  std::vector<const std::byte*> inputs;
  for (int i = 0; i < at.num_members(); ++i)
    inputs.push_back(i == at.member() ? own.data() : at.left_by(i, own.size()));
  auto output = at.what().output_bytes();
  std::byte* result = output.data();
  tree_reduce(inputs, {&result, 1}, part_of(at.what(), at.member()).count, at.what().signature.type,
              at.what().signature.op);
}

// Member i reduces part i of all inputs. An output may lie in its own part of its input, which nobody else
// reads.
algorithm reduce_scatter_large(meeting at) {
  at.come_with_tensors(exposed::input);
  co_await until([&] { return at.everyone_is_here(); });
  at.reach();
  auto own = part_of(at.what(), at.member());
  auto output = at.what().output_bytes();
  std::byte* result = output.data();
  reduce_share(at, own, {&result, 1}, output.size());
  at.pass();
  co_await until([&] { return at.everyone_passed(); });
}

}  // namespace

algorithm reduce_scatter(meeting at) {
  const auto& parts = at.what().parts;
  auto largest = *std::max_element(parts.begin(), parts.end());
  return is_small(at, largest) ? reduce_scatter_small(std::move(at)) : reduce_scatter_large(std::move(at));
}

}  // namespace troupe::direct
