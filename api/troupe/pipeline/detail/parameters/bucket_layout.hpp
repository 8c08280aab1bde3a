#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "troupe/autograd/parameter.hpp"
#include "troupe/optim/parameter_part.hpp"

namespace troupe::detail {

/// How tensors of the parameters' shapes travel between replicas: large ones in buckets of at most 2 MiB, all
/// small ones packed into one, or into one for each replica that owns some. A pure function of the shapes and
/// owners: the same in all replicas.
struct bucket_layout {
  struct packed_bucket {
    std::vector<std::size_t> parameters;  ///< indices, in the order of the bucket
    std::int64_t num_elements = 0;        ///< of all of them together
  };
  std::vector<optim::parameter_part> large;  ///< [buckets] without the packed ones
  std::vector<packed_bucket> packed;         ///< at least one
};

/// Which replica steps each parameter.
struct bucket_owners {
  int num_replicas = 0;           ///< 0: each steps all
  std::vector<int> of_parameter;  ///< [parameters]
};

/// Whether a trainable parameter has buckets of its own.
bool is_large(const parameter& one);

enum class layout_scope { trainable, all };

/// Of those of `parameters` that are trainable, or of all. `by_use`: all indices, in the order of the
/// buckets; none: as they are listed. `num_rounds`: of a large one, how often it travels, each time as one
/// bucket; with 1 (also if it is null) once, in buckets.
bucket_layout layout_of(const std::vector<parameter*>& parameters,
                        const std::vector<std::size_t>& by_use = {},
                        const std::function<int(std::size_t index)>& num_rounds = nullptr,
                        const bucket_owners& owners = {}, layout_scope which = layout_scope::trainable);

/// The elements of a tensor as a list.
inline tensor in_a_row(const tensor& x) { return x.reshape({x.num_elements()}); }

}  // namespace troupe::detail
