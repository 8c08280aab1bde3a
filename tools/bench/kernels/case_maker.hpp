#pragma once
#include "bench/kernels/kernel_cases.hpp"

namespace troupe::bench {

using cases = std::vector<kernel_case>;

/// Makes the tensors and cases of one device.
struct case_maker {
  kernel_sizes sizes;
  dtype type;
  device where;

  tensor values(const shape& extents, dtype of, const char* name) const;
  tensor zeros(const shape& extents) const { return tensor::zeros(extents, dtype::f32, where); }
  /// One for each of `count`, below `below`.
  tensor indices(std::int64_t count, std::int64_t below) const;
};

/// A case whose kernel works on tensors of x's extents and dtype, and must move the bytes of `moved`.
kernel_case moving(std::string name, const tensor& x, std::initializer_list<tensor> moved,
                   std::function<void()> run);

// What goes element by element, reduces or copies.
cases activations(const case_maker& make);
cases elementwise(const case_maker& make);
cases casts(const case_maker& make);
cases reductions(const case_maker& make);
cases rearrangements(const case_maker& make);

}  // namespace troupe::bench
