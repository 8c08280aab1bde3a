#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "troupe/tensor/dtype.hpp"

namespace troupe {

/// How several values become one. `mean` is the sum divided by their number at the end, toward zero for
/// integers; `max` and `min` give NaN where there is one.
enum class reduce_op : std::uint8_t { sum, mean, max, min, product };
/// "sum", ...
std::string_view to_string(reduce_op op);

/// Whether results are written around the caches: worth it where they are larger than those.
enum class store_kind : std::uint8_t { cached, streaming };

/// Elements of several members' arrays, reduced in one fixed binary tree over the members: [0, n) is split at
/// the largest power of two below n, and so are its halves. So the bits do not depend on who reduces which
/// part, and a member that holds an aligned block of leaves may reduce them by itself beforehand. bf16 and
/// f16 are summed in f32 and rounded once, at the root; integers wrap around.
///
/// inputs: 1 <= n < 32768 arrays of `count` elements in CPU memory; outputs: arrays that each get the result.
/// An output may be one of the inputs, but must not overlap one otherwise. Throws std::invalid_argument for
/// bool.
void tree_reduce(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                 std::int64_t count, dtype type, reduce_op op, store_kind store = store_kind::cached);

/// Copies bytes, around the caches if asked to. Whoever sees what this thread writes afterwards sees them.
void copy_bytes(const std::byte* from, std::byte* to, std::size_t size_bytes, store_kind store);

}  // namespace troupe
