#include "troupe/collective/direct/algorithms.hpp"
#include "troupe/collective/direct/share.hpp"

namespace troupe::direct {
namespace {

std::size_t offset_of(const meeting& at, int member) {
  return static_cast<std::size_t>(part_begin(at.what(), member)) * at.element_bytes();
}

algorithm gather_small(meeting at) {
  auto root = at.what().signature.root;
  auto own = at.what().input.bytes();
  at.come_with([&](int to) { return to == root ? own : own.first(0); });
  co_await until([&] { return at.everyone_is_here(); });
  if (at.member() != root) co_return;
  auto output = at.what().output_bytes();
  for (int i = 0; i < at.num_members(); ++i)
    copy_bytes(i == root ? own.data() : at.left_by(i, own.size()), output.data() + offset_of(at, i),
               own.size(), store_kind::cached);
}

// Everybody writes its part to the root's output.
algorithm gather_large(meeting at) {
  at.come_with_tensors(exposed::output);
  co_await until([&] { return at.everyone_is_here(); });
  at.reach();
  auto own = at.what().input.bytes();
  copy_bytes(own.data(), at.output_of(at.what().signature.root) + offset_of(at, at.member()), own.size(),
             store_for(own.size()));
  at.pass();
  co_await until([&] { return at.everyone_passed(); });
  at.take_output();
}

}  // namespace

algorithm gather(meeting at) {
  return is_small(at, at.what().parts[0]) ? gather_small(std::move(at)) : gather_large(std::move(at));
}

}  // namespace troupe::direct
