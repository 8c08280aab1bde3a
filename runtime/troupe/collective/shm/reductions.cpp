#include <algorithm>
#include <span>
#include <vector>

#include "troupe/collective/shm/algorithms.hpp"

// all_reduce, reduce_scatter and reduce. n: members, S: bytes of the call.
//
// Small: each member posts its input inline to the members that need it. Each of these reduces all n inputs.
//
// Large: the elements are divided into n ranges. Member i reads range i of all inputs, reduces it, and writes
// the result to the outputs that need it. It reads S bytes in all and writes S for all_reduce, S/n otherwise:
// the traffic of one copy of the tensor. Only member i reads range i of an input, so an input may be
// the output.
//
// Over leaves: the same, where a member's input is the nodes that it contributes, one after the other, in
// f32. Member i reads range i of each node.

namespace troupe::collective::shm {
namespace {

/// The nodes of an all_reduce over leaves, from element `first` on, where `input(i)` is member i's input.
template <class Input>
std::vector<node_elements> node_inputs(const shm_call& call, std::int64_t first, Input input) {
  std::vector<node_elements> inputs;
  for (const auto& each : call.operation().nodes) {
    auto offset = each.row * call.operation().signature.count + first;
    const std::byte* elements = input(each.member) + static_cast<std::size_t>(offset) * sizeof(float);
    inputs.push_back({elements, each.node.count, true});
  }
  return inputs;
}

/// Reduces `range` of all members' inputs into each of `outputs`, which begin with the range's first element.
/// `whole_bytes`: what the call writes to one output in all; it decides how results are stored.
void reduce_range(shm_call& call, const element_range& range, std::span<std::byte* const> outputs,
                  std::size_t whole_bytes) {
  const auto& signature = call.operation().signature;
  if (!call.operation().nodes.empty()) {
    auto nodes = node_inputs(call, range.first, [&](int member) { return call.input_of(member); });
    return tree_reduce(nodes, outputs, range.count, signature.type, signature.op, store_for(whole_bytes));
  }
  auto offset = static_cast<std::size_t>(range.first) * call.element_bytes();
  std::vector<const std::byte*> inputs;
  for (int i = 0; i < call.num_members(); ++i) inputs.push_back(call.input_of(i) + offset);
  tree_reduce(inputs, outputs, range.count, signature.type, signature.op, store_for(whole_bytes));
}

/// All members' inline elements, where the own ones are at `own`.
std::vector<const std::byte*> inline_inputs(const shm_call& call, std::span<const std::byte> own) {
  std::vector<const std::byte*> inputs;
  inputs.reserve(static_cast<std::size_t>(call.num_members()));
  for (int i = 0; i < call.num_members(); ++i)
    inputs.push_back(i == call.member() ? own.data() : call.inline_from(i, own.size()));
  return inputs;
}

algorithm all_reduce_small(shm_call call) {
  auto bytes = call.operation().input.bytes();
  call.post_inline([&](int) { return bytes; });
  co_await until([&] { return call.all_arrived(); });
  auto output = call.operation().output_bytes();
  std::byte* result = output.data();
  const auto& signature = call.operation().signature;
  tree_reduce(inline_inputs(call, bytes), {&result, 1}, signature.count, signature.type, signature.op);
}

algorithm all_reduce_small_nodes(shm_call call) {
  auto bytes = call.operation().input.bytes();
  call.post_inline([&](int) { return bytes; });
  co_await until([&] { return call.all_arrived(); });
  const auto& signature = call.operation().signature;
  auto nodes = node_inputs(call, 0, [&](int member) {
    auto size = static_cast<std::size_t>(num_inputs(call.operation(), member) * signature.count);
    return member == call.member() ? bytes.data() : call.inline_from(member, size * sizeof(float));
  });
  std::byte* result = call.operation().output_bytes().data();
  tree_reduce(nodes, {&result, 1}, signature.count, signature.type, signature.op);
}

algorithm all_reduce_large(shm_call call) {
  call.post_tensors(exposure::both);
  co_await until([&] { return call.all_arrived(); });
  call.begin_access();
  const auto& signature = call.operation().signature;
  auto own = range_of_member(signature.count, call.element_bytes(), call.num_members(), call.member());
  auto offset = static_cast<std::size_t>(own.first) * call.element_bytes();
  std::vector<std::byte*> outputs;
  for (int i = 0; i < call.num_members(); ++i) outputs.push_back(call.output_of(i) + offset);
  reduce_range(call, own, outputs, static_cast<std::size_t>(signature.count) * call.element_bytes());
  call.finish_access();
  co_await until([&] { return call.all_finished(); });
  call.copy_output();
}

std::span<const std::byte> input_part(const shm_call& call, int member) {
  auto part = part_of(call.operation(), member);
  return call.operation().input.bytes().subspan(static_cast<std::size_t>(part.first) * call.element_bytes(),
                                                static_cast<std::size_t>(part.count) * call.element_bytes());
}

algorithm reduce_scatter_small(shm_call call) {
  call.post_inline([&](int to) { return input_part(call, to); });
  co_await until([&] { return call.all_arrived(); });
  auto inputs = inline_inputs(call, input_part(call, call.member()));
  auto output = call.operation().output_bytes();
  std::byte* result = output.data();
  tree_reduce(inputs, {&result, 1}, part_of(call.operation(), call.member()).count,
              call.operation().signature.type, call.operation().signature.op);
}

algorithm reduce_scatter_large(shm_call call) {
  call.post_tensors(exposure::input);
  co_await until([&] { return call.all_arrived(); });
  call.begin_access();
  auto own = part_of(call.operation(), call.member());
  auto output = call.operation().output_bytes();
  std::byte* result = output.data();
  reduce_range(call, own, {&result, 1}, output.size());
  call.finish_access();
  co_await until([&] { return call.all_finished(); });
}

algorithm reduce_small(shm_call call) {
  const auto& signature = call.operation().signature;
  auto bytes = call.operation().input.bytes();
  call.post_inline([&](int to) { return to == signature.root ? bytes : bytes.first(0); });
  co_await until([&] { return call.all_arrived(); });
  if (call.member() != signature.root) co_return;
  auto output = call.operation().output_bytes();
  std::byte* result = output.data();
  tree_reduce(inline_inputs(call, bytes), {&result, 1}, signature.count, signature.type, signature.op);
}

algorithm reduce_large(shm_call call) {
  call.post_tensors(exposure::both);
  co_await until([&] { return call.all_arrived(); });
  call.begin_access();
  const auto& signature = call.operation().signature;
  auto own = range_of_member(signature.count, call.element_bytes(), call.num_members(), call.member());
  auto offset = static_cast<std::size_t>(own.first) * call.element_bytes();
  std::byte* result = call.output_of(signature.root) + offset;
  reduce_range(call, own, {&result, 1}, static_cast<std::size_t>(signature.count) * call.element_bytes());
  call.finish_access();
  co_await until([&] { return call.all_finished(); });
  call.copy_output();
}

}  // namespace

algorithm all_reduce(shm_call call) {
  if (!call.operation().nodes.empty()) {
    auto most = max_inputs(call.operation(), call.num_members()) * call.operation().signature.count;
    bool is_inline = static_cast<std::size_t>(most) * sizeof(float) <= control_block::max_inline_bytes;
    return is_inline ? all_reduce_small_nodes(std::move(call)) : all_reduce_large(std::move(call));
  }
  return is_small(call, call.operation().signature.count) ? all_reduce_small(std::move(call))
                                                          : all_reduce_large(std::move(call));
}

algorithm reduce_scatter(shm_call call) {
  const auto& parts = call.operation().parts;
  auto largest = *std::max_element(parts.begin(), parts.end());
  return is_small(call, largest) ? reduce_scatter_small(std::move(call))
                                 : reduce_scatter_large(std::move(call));
}

algorithm reduce(shm_call call) {
  return is_small(call, call.operation().signature.count) ? reduce_small(std::move(call))
                                                          : reduce_large(std::move(call));
}

}  // namespace troupe::collective::shm
