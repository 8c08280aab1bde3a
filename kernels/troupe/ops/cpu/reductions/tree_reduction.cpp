#include "troupe/ops/tree_reduction.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "troupe/error/errors.hpp"
#include "troupe/ops/cpu/reductions/block_tree.hpp"
#include "troupe/ops/cpu/reductions/pair_reduction.hpp"

namespace troupe {
namespace {

using cpu::block_tree;
using cpu::member_inputs;
using cpu::tree_block_elements;

template <class T>
void reduce_as(const member_inputs& inputs, std::span<std::byte* const> outputs, std::int64_t count,
               reduce_op op, store_kind store) {
  block_tree<T> tree(inputs, op);
  for (std::int64_t first = 0; first < count; first += tree_block_elements) {
    auto size = std::min(tree_block_elements, count - first);
    const std::byte* result = tree.reduce(first, size);
    for (std::byte* output : outputs)
      begin_copy(result, output + first * static_cast<std::int64_t>(sizeof(T)),
                 static_cast<std::size_t>(size) * sizeof(T), store);
  }
  finish_stores(store);
}

template <class T>
void reduce_node_as(const member_inputs& inputs, std::byte* output, std::int64_t count, reduce_op op) {
  block_tree<T> tree(inputs, op);
  using value = typename block_tree<T>::value;
  for (std::int64_t first = 0; first < count; first += tree_block_elements) {
    auto size = std::min(tree_block_elements, count - first);
    std::memcpy(output + static_cast<std::size_t>(first) * sizeof(value), tree.sum(first, size),
                static_cast<std::size_t>(size) * sizeof(value));
  }
}

/// Adds two or four arrays of f32 straight into an output that is none of them. False: another form.
bool add_directly(std::span<const std::byte* const> inputs, std::byte* output, std::int64_t count) {
  auto is_aligned = [](const std::byte* array) {
    return reinterpret_cast<std::uintptr_t>(array) % alignof(float) == 0;
  };
  if ((inputs.size() != 2 && inputs.size() != 4) || !is_aligned(output) ||
      !std::ranges::all_of(inputs, is_aligned) || std::ranges::count(inputs, output) > 0)
    return false;
  auto floats = [&](std::size_t input) { return reinterpret_cast<const float*>(inputs[input]); };
  auto* sum = reinterpret_cast<float*>(output);
  if (inputs.size() == 2)
    cpu::sum_of_two(floats(0), floats(1), sum, count);
  else
    cpu::sum_of_four(floats(0), floats(1), floats(2), floats(3), sum, count);
  return true;
}

/// Calls `body` with an element of the dtype.
template <class Body>
void with_element(dtype type, Body body) {
  switch (type) {
    case dtype::f32:
      return body(float{});
    case dtype::bf16:
      return body(bfloat16{});
    case dtype::f16:
      return body(float16{});
    case dtype::i32:
      return body(std::int32_t{});
    case dtype::i64:
      return body(std::int64_t{});
    case dtype::u8:
      return body(std::uint8_t{});
    case dtype::boolean:
      throw_invalid("tree_reduce", "numbers", "bool");
  }
}

}  // namespace

std::string_view to_string(reduce_op op) {
  constexpr std::array<std::string_view, 5> names{"sum", "mean", "max", "min", "product"};
  return names.at(static_cast<std::size_t>(op));
}

void reduce_node(std::span<const std::byte* const> inputs, std::byte* output, std::int64_t count, dtype type,
                 reduce_op op) {
  if (inputs.size() == 1) {
    auto size = static_cast<std::size_t>(count) * size_bytes(type);
    return begin_copy(inputs[0], output, size, store_kind::cached);
  }
  if (type == dtype::f32 && op == reduce_op::sum && add_directly(inputs, output, count)) return;
  member_inputs given(inputs);
  with_element(type, [&](auto one) { reduce_node_as<decltype(one)>(given, output, count, op); });
}

void widen_leaf(const std::byte* input, std::byte* output, std::int64_t count, dtype type) {
  if (!is_floating(type)) throw_invalid("widen_leaf", "f32, bf16 or f16", to_string(type));
  member_inputs given({&input, 1});
  with_element(type, [&](auto one) { reduce_node_as<decltype(one)>(given, output, count, reduce_op::sum); });
}

void tree_reduce(std::span<const node_elements> inputs, std::span<std::byte* const> outputs,
                 std::int64_t count, dtype type, reduce_op op, store_kind store) {
  member_inputs given(inputs);
  with_element(type, [&](auto one) { reduce_as<decltype(one)>(given, outputs, count, op, store); });
}

void tree_reduce(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                 std::int64_t count, dtype type, reduce_op op, store_kind store) {
  member_inputs given(inputs);
  with_element(type, [&](auto one) { reduce_as<decltype(one)>(given, outputs, count, op, store); });
}

}  // namespace troupe
