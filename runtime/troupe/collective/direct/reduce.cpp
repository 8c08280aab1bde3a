#include "troupe/collective/direct/algorithms.hpp"
#include "troupe/collective/direct/reduce_share.hpp"
#include "troupe/collective/direct/share.hpp"

namespace troupe::direct {
namespace {

algorithm reduce_small(meeting at) {
  const auto& signature = at.what().signature;
  auto bytes = at.what().input.bytes();
  at.come_with([&](int to) { return to == signature.root ? bytes : bytes.first(0); });
  co_await until([&] { return at.everyone_is_here(); });
  if (at.member() != signature.root) co_return;
  std::vector<const std::byte*> inputs;
  for (int i = 0; i < at.num_members(); ++i)
    inputs.push_back(i == at.member() ? bytes.data() : at.left_by(i, bytes.size()));
  auto output = at.what().output_bytes();
  std::byte* result = output.data();
  tree_reduce(inputs, {&result, 1}, signature.count, signature.type, signature.op);
}

// Member i reduces the i-th share of all inputs into the root's output.
algorithm reduce_large(meeting at) {
  at.come_with_tensors(exposed::both);
  co_await until([&] { return at.everyone_is_here(); });
  at.reach();
  const auto& signature = at.what().signature;
  auto own = share_of(signature.count, at.element_bytes(), at.num_members(), at.member());
  auto offset = static_cast<std::size_t>(own.first) * at.element_bytes();
  std::byte* result = at.output_of(signature.root) + offset;
  reduce_share(at, own, {&result, 1}, static_cast<std::size_t>(signature.count) * at.element_bytes());
  at.pass();
  co_await until([&] { return at.everyone_passed(); });
  at.take_output();
}

}  // namespace

algorithm reduce(meeting at) {
  return is_small(at, at.what().signature.count) ? reduce_small(std::move(at)) : reduce_large(std::move(at));
}

}  // namespace troupe::direct
