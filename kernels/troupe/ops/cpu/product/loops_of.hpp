#pragma once
#include "troupe/ops/cpu/product/block_tiles.hpp"
#include "troupe/ops/cpu/product/few_rows.hpp"
#include "troupe/ops/cpu/product/gathered_tile.hpp"
#include "troupe/ops/cpu/product/packing.hpp"
#include "troupe/ops/cpu/product/tile.hpp"

namespace troupe::cpu {
namespace {

template <class V>
constexpr product_loops loops_of{.panel_rows = V::max_rows,
                                 .panel_columns = panel_columns_of<V>,
                                 .pack_rows = pack_rows<V>,
                                 .pack_columns = pack_columns<V>,
                                 .pack_gathered = pack_gathered<V>,
                                 .multiply_packed = multiply_packed<V>,
                                 .multiply_gathered = multiply_gathered<V>,
                                 .multiply_few_rows = multiply_few_rows<V>,
                                 .multiply_block = multiply_block<V>};

}  // namespace
}  // namespace troupe::cpu
