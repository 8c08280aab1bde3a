#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "troupe/nn/module.hpp"
#include "troupe/pipeline/detail/parameters/tied_gradients.hpp"

namespace troupe::detail {

/// [layers] The indices in `parameters` of the trainable weights that each layer reads. A layer that reads
/// another use of a tied weight has the index of the first use.
std::vector<std::vector<std::size_t>> weights_by_layer(const std::vector<std::shared_ptr<nn::Module>>& layers,
                                                       const std::vector<named_parameter>& parameters,
                                                       const std::vector<tied_gradients::weight>& tied);

/// The indices from 0 to `count`, those of the first layers first, those that no layer reads last.
std::vector<std::size_t> in_order_of_use(const std::vector<std::vector<std::size_t>>& by_layer,
                                         std::size_t count);

}  // namespace troupe::detail
