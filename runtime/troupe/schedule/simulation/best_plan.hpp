#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "troupe/schedule/simulation/simulate.hpp"

namespace troupe::schedule {

/// What costs and memory were measured with: a model cut into stages, a batch cut into microbatches. Another
/// cut of the same model and batch has them in proportion.
struct measured_cut {
  int num_stages = 1;
  int num_microbatches = 1;
  action_costs costs;          ///< of one stage and one microbatch
  double fixed_cost = 0;       ///< the part of F, I and W each that is the same in every cut
  double bytes_per_chunk = 0;  ///< what a stage keeps of one microbatch from its forward to its backward
};

struct plan_search {
  measured_cut measured;
  int num_devices = 1;
  std::vector<schedule_kind> kinds = {};                    ///< to choose from; empty: all synchronous ones
  int most_chunks = 4;                                      ///< stages of a device at most
  std::vector<int> num_microbatches = {};                   ///< to choose from; empty: as measured
  double memory = std::numeric_limits<double>::infinity();  ///< bytes for activations, of each device
};

/// A plan and what it costs.
struct costed_plan {
  plan made;
  action_costs costs;  ///< of one stage and one microbatch of `made`
  timeline ran;
  double bytes_per_chunk = 0;  ///< what a stage of `made` keeps of one microbatch
  /// Of the device that keeps most.
  double peak_bytes() const;
};

/// The same model and batch in another cut.
action_costs costs_in(const measured_cut& measured, int num_stages, int num_microbatches);
double bytes_in(const measured_cut& measured, int num_stages, int num_microbatches);

/// The fastest plan that fits into the memory: candidates are put in order by closed_form_of, and the first
/// ones that fit are simulated. Plans are of chains, with one stage a device or so many chunks as their kind
/// takes, and at most 65536 stages times microbatches. Throws bad_input if none fits, saying which one needs
/// least, and how much, or if a number is not possible.
costed_plan best_plan(const plan_search& search);

}  // namespace troupe::schedule
