#pragma once
#include <string_view>

#include "troupe/ops/kernels/kernel.hpp"
#include "troupe/ops/rows.hpp"

namespace troupe {

/// What troupe/ops/rows.hpp and troupe/ops/embedding.hpp need from a device. Shapes and dtypes have been
/// checked, outputs are allocated; the kernels check the range of the indices, and report errors as
/// `operation`.
struct row_kernels {
  kernel<void(std::string_view operation, const tensor& values, const tensor& indices, tensor& out)> gather{
      "gather"};
  kernel<void(std::string_view operation, const tensor& indices, const tensor& rows, tensor& sum,
              gradient_mode mode)>
      scatter_add{"scatter_add"};
};

}  // namespace troupe
