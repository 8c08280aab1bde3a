#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "troupe/schedule/simulation/best_plan.hpp"

namespace troupe {

/// The options of `troupe schedule`.
struct schedule_request {
  std::optional<std::string> kind;       ///< none: 1f1b, or with `best` all that train
  std::optional<std::string> plan_file;  ///< CSV; none: the plan is made
  std::optional<int> stages;             ///< none: 4, or as many as the devices have with the kind
  std::optional<int> devices;            ///< none: as many as the stages need with the kind
  int microbatches = 8;                  ///< in an optimizer step
  int flush_every = 1;                   ///< optimizer steps between two flushes
  int replicas = 1;                      ///< of the pipeline, which all run its plan
  std::string shard = "none";            ///< what the replicas divide: none, optimizer, grad or full
  std::string reshard_after = "pass";    ///< see schedule::gather_options
  int gather_ahead = 1;                  ///< the same
  action_costs costs;
  std::optional<std::uint64_t> memory_per_chunk;  ///< bytes that a stage keeps of one microbatch
  std::optional<std::uint64_t> memory;  ///< bytes that each device has for activations; none: no limit
  bool best = false;
  std::optional<int> batch;  ///< samples, whose divisors `best` takes as microbatches; none: `microbatches`
  int most_chunks = 4;
  double fixed_cost = 0;
  std::optional<std::string> svg_file;
  std::optional<std::string> csv_file;
  std::optional<int> columns;  ///< none: the terminal's
  bool json = false;
  bool list = false;
};

/// Makes, reads or chooses the plan, and simulates it. Throws bad_input for what is not possible, and if the
/// activations of a device take more than the memory, saying by how much and which schedule would fit.
schedule::costed_plan requested_plan(const schedule_request& request);

/// Prints the plan and what it costs, as text or as JSON, and writes the files. Throws bad_input naming a
/// file that cannot be written.
void show_plan(const schedule_request& request, const schedule::costed_plan& shown);

}  // namespace troupe
