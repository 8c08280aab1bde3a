#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "troupe/autograd/parameter.hpp"
#include "troupe/optim/parameter_part.hpp"

namespace troupe::detail {

/// How tensors of the parameters' shapes travel between replicas: large ones in buckets of at most 2 MiB, all
/// small ones packed into one. A pure function of the shapes: the same in all replicas.
struct bucket_layout {
  std::vector<optim::parameter_part> large;  ///< [buckets] without the packed one
  std::vector<std::size_t> small;            ///< indices of the parameters, in the order of the packed bucket
  std::int64_t num_small_elements = 0;       ///< elements of all small parameters together
};

/// Whether a trainable parameter has buckets of its own.
bool is_large(const parameter& one);

/// Of those of `parameters` that are trainable. `by_use`: all indices, in the order of the buckets; none: as
/// they are listed. `num_rounds`: of a large one, how often it travels, each time as one bucket; with 1
/// (also if it is null) once, in buckets.
bucket_layout layout_of(const std::vector<parameter*>& parameters,
                        const std::vector<std::size_t>& by_use = {},
                        const std::function<int(std::size_t index)>& num_rounds = nullptr);

/// The elements of a tensor as a list.
inline tensor in_a_row(const tensor& x) { return x.reshape({x.num_elements()}); }

}  // namespace troupe::detail
