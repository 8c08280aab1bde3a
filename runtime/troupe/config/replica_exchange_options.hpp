#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/tensor/dtype.hpp"

namespace troupe {

/// What the replicas of a pipeline exchange, as options of a job and of a Pipeline. At most one of them is
/// not at its default. A new one needs its name below, a row in job_fields, its range in check_options, and a
/// setter in Pipeline.
struct replica_exchange_options {
  /// f32, bf16 or f16: the dtype in which replicas exchange gradients. In 16 bits, half as many bytes, each
  /// replica rounds its own before they are added up in f32, and the sums once.
  dtype gradient_sync = dtype::f32;
  /// The fraction of each large weight's gradient that a replica sends, in (0, 1]: its elements of largest
  /// magnitude. It adds the others to the gradient of its next step. 0: all elements.
  double top_k_gradients = 0;
  /// The rank of the two factors as which a replica sends the gradient of each large weight matrix
  /// (PowerSGD). It adds what they lack to the gradient of its next step. 0: all elements.
  int power_sgd_rank = 0;
  /// Local SGD: a replica steps with its own gradients, and after every so many optimizer steps the replicas
  /// average their weights. It must divide the number of steps. 0: they exchange gradients in each step.
  int average_every = 0;
};

/// The names of all fields, in order, as in job_fields.
constexpr std::array<std::string_view, 4> replica_exchange_fields{"gradient_sync", "top_k_gradients",
                                                                  "power_sgd_rank", "average_every"};

/// A field that is not at its default.
struct given_exchange {
  std::string_view name;    ///< "average_every"
  std::string value;        ///< "4"
  std::string option_name;  ///< "--average-every"
};
/// In the order of the fields.
std::vector<given_exchange> given_in(const replica_exchange_options& options);

}  // namespace troupe
