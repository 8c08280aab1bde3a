#include "troupe/ops/tree_reduction.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

#include "troupe/error/errors.hpp"
#include "troupe/ops/cpu/block_conversion.hpp"
#include "troupe/ops/cpu/vector_clones.hpp"

namespace troupe {
namespace {

// A block of every tree node that is alive at once stays in the innermost cache.
constexpr std::int64_t block_elements = 256;
constexpr std::size_t most_levels = 16;

// Sums and products of integers wrap around, which only unsigned ones may.
template <class T>
T wrapping_sum(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
  else
    return a + b;
}
template <class T>
T wrapping_product(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  else
    return a * b;
}

template <class T, class Pair>
void for_each_pair(const T* a, const T* b, T* result, std::int64_t count, Pair pair) {
  for (std::int64_t i = 0; i < count; ++i) result[i] = pair(a[i], b[i]);
}

template <class T>
void combine(reduce_op op, const T* a, const T* b, T* result, std::int64_t count) {
  switch (op) {
    case reduce_op::sum:
    case reduce_op::mean:
      return for_each_pair(a, b, result, count, wrapping_sum<T>);
    case reduce_op::product:
      return for_each_pair(a, b, result, count, wrapping_product<T>);
    case reduce_op::max:
      return for_each_pair(a, b, result, count, [](T x, T y) { return x > y || x != x ? x : y; });
    case reduce_op::min:
      return for_each_pair(a, b, result, count, [](T x, T y) { return x < y || x != x ? x : y; });
  }
}

// The sums that most gradients need, without a way through the innermost cache for each pair. `result` is no
// input.
TROUPE_CLONES void sum_of_two(const float* a, const float* b, float* __restrict result, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) result[i] = a[i] + b[i];
}
TROUPE_CLONES void sum_of_four(const float* a, const float* b, const float* c, const float* d,
                               float* __restrict result, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) result[i] = (a[i] + b[i]) + (c[i] + d[i]);
}

// bf16 and f16 are combined as floats, the others as they are.
template <class T>
using combined_as = std::conditional_t<std::is_integral_v<T>, T, float>;

/// Inputs by their first member; of few members without an allocation.
class member_inputs {
 public:
  explicit member_inputs(std::span<const std::byte* const> leaves) : count_(leaves.size()) {
    auto all = place();
    for (std::size_t i = 0; i < leaves.size(); ++i) all[i].elements = leaves[i];
  }
  explicit member_inputs(std::span<const node_elements> nodes) {
    for (const auto& each : nodes) count_ += static_cast<std::size_t>(each.num_members);
    auto all = place();
    std::size_t first = 0;
    for (const auto& each : nodes) {
      all[first] = each;
      first += static_cast<std::size_t>(each.num_members);
    }
  }
  member_inputs(const member_inputs&) = delete;
  member_inputs& operator=(const member_inputs&) = delete;

  std::span<const node_elements> by_first_member() const {
    return {many_.empty() ? few_.data() : many_.data(), count_};
  }

 private:
  std::span<node_elements> place() {
    if (count_ <= few_.size()) return few_;
    many_.resize(count_);
    return many_;
  }

  std::size_t count_ = 0;
  std::array<node_elements, 8> few_{};
  std::vector<node_elements> many_;
};

template <class T>
class block_tree {
 public:
  using value = combined_as<T>;

  block_tree(const member_inputs& inputs, reduce_op op) : inputs_(inputs.by_first_member()), op_(op) {
    if (inputs_.size() >= std::size_t{1} << (most_levels - 1))
      throw_invalid("tree_reduce", "fewer than 32768 inputs", std::to_string(inputs_.size()));
  }

  /// The root's elements [first, first + count), neither divided nor rounded.
  const value* sum(std::int64_t first, std::int64_t count) {
    return node(0, inputs_.size(), 0, first, count);
  }

  /// The result of elements [first, first + count), as T.
  const std::byte* reduce(std::int64_t first, std::int64_t count) {
    const value* root = sum(first, count);
    if (op_ == reduce_op::mean) root = divide(root, count);
    if constexpr (std::is_same_v<T, value>) {
      return reinterpret_cast<const std::byte*>(root);
    } else {
      cpu::from_float(root, rounded_.data(), count);
      return reinterpret_cast<const std::byte*>(rounded_.data());
    }
  }

 private:
  using block = std::array<value, block_elements>;

  const value* node(std::size_t begin, std::size_t end, std::size_t level, std::int64_t first,
                    std::int64_t count) {
    if (is_given(begin, end)) return given(begin, level, first, count);
    if constexpr (std::is_same_v<T, float>)
      if (const float* sum = short_sum(begin, end, level, first, count)) return sum;
    auto middle = middle_of(begin, end);
    const value* left = node(begin, middle, level, first, count);
    const value* right = node(middle, end, level + 1, first, count);
    combine(op_, left, right, scratch_[level].data(), count);
    return scratch_[level].data();
  }

  /// Whether a node's elements are there already.
  bool is_given(std::size_t begin, std::size_t end) const {
    return inputs_[begin].elements && static_cast<std::size_t>(inputs_[begin].num_members) == end - begin;
  }
  static std::size_t middle_of(std::size_t begin, std::size_t end) {
    return begin + std::bit_floor(end - begin - 1);
  }

  /// A given node's floats where they lie; null if they are not aligned.
  const float* aligned(std::size_t begin, std::size_t end, std::int64_t first) const {
    if (!is_given(begin, end)) return nullptr;
    const auto* at = reinterpret_cast<const float*>(inputs_[begin].elements) + first;
    return reinterpret_cast<std::uintptr_t>(at) % alignof(float) == 0 ? at : nullptr;
  }

  /// Of two given nodes where they lie, or of two pairs of such; null if there is something else.
  const float* short_sum(std::size_t begin, std::size_t end, std::size_t level, std::int64_t first,
                         std::int64_t count) {
    if (op_ != reduce_op::sum && op_ != reduce_op::mean) return nullptr;
    auto middle = middle_of(begin, end);
    float* result = scratch_[level].data();
    const float *left = aligned(begin, middle, first), *right = aligned(middle, end, first);
    if (left && right) return sum_of_two(left, right, result, count), result;
    if (left || right || middle - begin < 2 || end - middle < 2) return nullptr;
    auto in_left = middle_of(begin, middle), in_right = middle_of(middle, end);
    const float *a = aligned(begin, in_left, first), *b = aligned(in_left, middle, first);
    const float *c = aligned(middle, in_right, first), *d = aligned(in_right, end, first);
    if (!a || !b || !c || !d) return nullptr;
    return sum_of_four(a, b, c, d, result, count), result;
  }

  const value* given(std::size_t member, std::size_t level, std::int64_t first, std::int64_t count) {
    const auto& input = inputs_[member];
    if constexpr (!std::is_same_v<T, value>) {
      if (input.num_members > 1) {
        std::memcpy(scratch_[level].data(), input.elements + static_cast<std::size_t>(first) * sizeof(value),
                    static_cast<std::size_t>(count) * sizeof(value));
        return scratch_[level].data();
      }
    }
    const auto* elements = reinterpret_cast<const T*>(input.elements) + first;
    if constexpr (std::is_same_v<T, value>) {
      if (reinterpret_cast<std::uintptr_t>(elements) % alignof(T) == 0) return elements;
      std::memcpy(scratch_[level].data(), elements, static_cast<std::size_t>(count) * sizeof(T));
    } else {
      std::memcpy(rounded_.data(), elements, static_cast<std::size_t>(count) * sizeof(T));
      cpu::to_float(rounded_.data(), scratch_[level].data(), count);
    }
    return scratch_[level].data();
  }

  const value* divide(const value* root, std::int64_t count) {
    auto* mean = scratch_[0].data();
    auto num_members = static_cast<value>(inputs_.size());
    for (std::int64_t i = 0; i < count; ++i) mean[i] = static_cast<value>(root[i] / num_members);
    return mean;
  }

  std::span<const node_elements> inputs_;  // by their first member
  reduce_op op_;
  std::array<block, most_levels> scratch_;  // only as many as there are levels are touched
  std::array<T, block_elements> rounded_;
};

/// Without waiting for streaming stores to be seen.
void copy_block(const std::byte* from, std::byte* to, std::size_t size_bytes, store_kind store) {
#if defined(__x86_64__)
  if (store == store_kind::streaming && reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
    auto* target = reinterpret_cast<__m128i*>(to);
    const auto* source = reinterpret_cast<const __m128i*>(from);
    auto num_words = size_bytes / 16;
    for (std::size_t i = 0; i < num_words; ++i) _mm_stream_si128(target + i, _mm_loadu_si128(source + i));
    from += num_words * 16;
    to += num_words * 16;
    size_bytes %= 16;
  }
#endif
  if (from != to && size_bytes > 0) std::memcpy(to, from, size_bytes);
}

/// Streaming stores are seen by others before what is stored from now on.
void finish_stores([[maybe_unused]] store_kind store) {
#if defined(__x86_64__)
  if (store == store_kind::streaming) _mm_sfence();
#endif
}

template <class T>
void reduce_as(const member_inputs& inputs, std::span<std::byte* const> outputs, std::int64_t count,
               reduce_op op, store_kind store) {
  block_tree<T> tree(inputs, op);
  for (std::int64_t first = 0; first < count; first += block_elements) {
    auto size = std::min(block_elements, count - first);
    const std::byte* result = tree.reduce(first, size);
    for (std::byte* output : outputs)
      copy_block(result, output + first * static_cast<std::int64_t>(sizeof(T)),
                 static_cast<std::size_t>(size) * sizeof(T), store);
  }
  finish_stores(store);
}

template <class T>
void reduce_node_as(const member_inputs& inputs, std::byte* output, std::int64_t count, reduce_op op) {
  block_tree<T> tree(inputs, op);
  using value = typename block_tree<T>::value;
  for (std::int64_t first = 0; first < count; first += block_elements) {
    auto size = std::min(block_elements, count - first);
    std::memcpy(output + static_cast<std::size_t>(first) * sizeof(value), tree.sum(first, size),
                static_cast<std::size_t>(size) * sizeof(value));
  }
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

void add_nodes_within(std::span<const int> members, int first, int end, std::vector<tree_node>& found) {
  auto from = std::ranges::lower_bound(members, first);
  auto num_inside = std::ranges::lower_bound(members, end) - from;
  if (num_inside == 0) return;
  if (num_inside == end - first) return found.push_back({first, end - first});
  auto middle = first + static_cast<int>(std::bit_floor(static_cast<unsigned>(end - first - 1)));
  add_nodes_within(members, first, middle, found);
  add_nodes_within(members, middle, end, found);
}

}  // namespace

std::string_view to_string(reduce_op op) {
  constexpr std::array<std::string_view, 5> names{"sum", "mean", "max", "min", "product"};
  return names.at(static_cast<std::size_t>(op));
}

void copy_bytes(const std::byte* from, std::byte* to, std::size_t size_bytes, store_kind store) {
  copy_block(from, to, size_bytes, store);
  finish_stores(store);
}

std::vector<tree_node> nodes_within(std::span<const int> members, int num_members) {
  std::vector<tree_node> found;
  add_nodes_within(members, 0, num_members, found);
  return found;
}

dtype node_type(const tree_node& of, dtype type) {
  return of.count > 1 && is_floating(type) ? dtype::f32 : type;
}

void reduce_node(std::span<const std::byte* const> inputs, std::byte* output, std::int64_t count, dtype type,
                 reduce_op op) {
  if (inputs.size() == 1) {
    auto size = static_cast<std::size_t>(count) * size_bytes(type);
    return copy_block(inputs[0], output, size, store_kind::cached);
  }
  member_inputs given(inputs);
  with_element(type, [&](auto one) { reduce_node_as<decltype(one)>(given, output, count, op); });
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
