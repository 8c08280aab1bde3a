#include "troupe/collective/direct/algorithms.hpp"
#include "troupe/collective/direct/reduce_share.hpp"
#include "troupe/collective/direct/share.hpp"

namespace troupe::direct {
namespace {

// Everybody leaves all its elements with everybody, who reduce them alike.
algorithm all_reduce_small(meeting at) {
  auto bytes = at.what().input.bytes();
  at.come_with([&](int) { return bytes; });
  co_await until([&] { return at.everyone_is_here(); });
  std::vector<const std::byte*> inputs;
  inputs.reserve(static_cast<std::size_t>(at.num_members()));
  for (int i = 0; i < at.num_members(); ++i)
    inputs.push_back(i == at.member() ? bytes.data() : at.left_by(i, bytes.size()));
  auto output = at.what().output_bytes();
  std::byte* result = output.data();
  const auto& signature = at.what().signature;
  tree_reduce(inputs, {&result, 1}, signature.count, signature.type, signature.op);
}

// Member i reduces the i-th share of all inputs and writes it to all outputs. It reads n shares and writes n:
// the traffic of one copy of the tensor.
algorithm all_reduce_large(meeting at) {
  at.come_with_tensors(exposed::both);
  co_await until([&] { return at.everyone_is_here(); });
  at.reach();
  const auto& signature = at.what().signature;
  auto own = share_of(signature.count, at.element_bytes(), at.num_members(), at.member());
  auto offset = static_cast<std::size_t>(own.first) * at.element_bytes();
  std::vector<std::byte*> outputs;
  for (int i = 0; i < at.num_members(); ++i) outputs.push_back(at.output_of(i) + offset);
  reduce_share(at, own, outputs, static_cast<std::size_t>(signature.count) * at.element_bytes());
  at.pass();
  co_await until([&] { return at.everyone_passed(); });
  at.take_output();
}

}  // namespace

algorithm all_reduce(meeting at) {
  return is_small(at, at.what().signature.count) ? all_reduce_small(std::move(at))
                                                 : all_reduce_large(std::move(at));
}

}  // namespace troupe::direct
