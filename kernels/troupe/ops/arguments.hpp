#pragma once
#include <string_view>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Throws std::invalid_argument "[operation] expected <argument> <type><extents>, got ..." unless `value`
/// has exactly this dtype and shape.
void require_argument(std::string_view operation, std::string_view argument, const tensor& value, dtype type,
                      const shape& extents);

/// The same, of any shape with `rank` axes.
void require_rank(std::string_view operation, std::string_view argument, const tensor& value, dtype type,
                  int rank);

}  // namespace troupe
