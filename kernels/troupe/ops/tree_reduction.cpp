#include "troupe/ops/tree_reduction.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

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

template <class T>
class block_tree {
 public:
  using value = combined_as<T>;

  block_tree(std::span<const std::byte* const> inputs, reduce_op op) : inputs_(inputs), op_(op) {
    if (inputs.size() >= std::size_t{1} << (most_levels - 1))
      throw_invalid("tree_reduce", "fewer than 32768 inputs", std::to_string(inputs.size()));
  }

  /// The result of elements [first, first + count), as T.
  const std::byte* reduce(std::int64_t first, std::int64_t count) {
    const value* root = node(0, inputs_.size(), 0, first, count);
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
    if (end - begin == 1) return leaf(begin, level, first, count);
    if constexpr (std::is_same_v<T, float>)
      if (const float* sum = short_sum(begin, end, level, first, count)) return sum;
    auto middle = begin + std::bit_floor(end - begin - 1);
    const value* left = node(begin, middle, level, first, count);
    const value* right = node(middle, end, level + 1, first, count);
    combine(op_, left, right, scratch_[level].data(), count);
    return scratch_[level].data();
  }

  /// Of two or four inputs where they lie; null if they are not such.
  const float* short_sum(std::size_t begin, std::size_t end, std::size_t level, std::int64_t first,
                         std::int64_t count) {
    bool is_sum = op_ == reduce_op::sum || op_ == reduce_op::mean;
    if (!is_sum || (end - begin != 2 && end - begin != 4)) return nullptr;
    std::array<const float*, 4> at{};
    for (auto i = begin; i < end; ++i) {
      at[i - begin] = reinterpret_cast<const float*>(inputs_[i]) + first;
      if (reinterpret_cast<std::uintptr_t>(at[i - begin]) % alignof(float) != 0) return nullptr;
    }
    float* result = scratch_[level].data();
    if (end - begin == 2)
      sum_of_two(at[0], at[1], result, count);
    else
      sum_of_four(at[0], at[1], at[2], at[3], result, count);
    return result;
  }

  const value* leaf(std::size_t member, std::size_t level, std::int64_t first, std::int64_t count) {
    const auto* elements = reinterpret_cast<const T*>(inputs_[member]) + first;
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

  std::span<const std::byte* const> inputs_;
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
void reduce_as(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
               std::int64_t count, reduce_op op, store_kind store) {
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

}  // namespace

std::string_view to_string(reduce_op op) {
  constexpr std::array<std::string_view, 5> names{"sum", "mean", "max", "min", "product"};
  return names.at(static_cast<std::size_t>(op));
}

void copy_bytes(const std::byte* from, std::byte* to, std::size_t size_bytes, store_kind store) {
  copy_block(from, to, size_bytes, store);
  finish_stores(store);
}

void tree_reduce(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                 std::int64_t count, dtype type, reduce_op op, store_kind store) {
  switch (type) {
    case dtype::f32:
      return reduce_as<float>(inputs, outputs, count, op, store);
    case dtype::bf16:
      return reduce_as<bfloat16>(inputs, outputs, count, op, store);
    case dtype::f16:
      return reduce_as<float16>(inputs, outputs, count, op, store);
    case dtype::i32:
      return reduce_as<std::int32_t>(inputs, outputs, count, op, store);
    case dtype::i64:
      return reduce_as<std::int64_t>(inputs, outputs, count, op, store);
    case dtype::u8:
      return reduce_as<std::uint8_t>(inputs, outputs, count, op, store);
    case dtype::boolean:
      throw_invalid("tree_reduce", "numbers", "bool");
  }
}

}  // namespace troupe
