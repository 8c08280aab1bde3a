#include "troupe/schedule/simulation/best_plan.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/schedule/simulation/closed_form.hpp"
#include "troupe/usage/number_text.hpp"

namespace troupe::schedule {
namespace {

/// The closed forms are exact under conditions only and know no communication, so that more than the first
/// one has to be looked at.
constexpr std::size_t num_finalists = 16;

/// Stages times microbatches. Plans beyond would take minutes, and gain nothing on those with fewer.
constexpr std::int64_t most_simulated_cells = 1 << 16;

struct candidate {
  schedule_kind kind;
  chunk_shape shape;
  closed_form expected;
  double peak_bytes = 0;
};

std::string name_of(const candidate& each) {
  return std::string(to_string(each.kind)) + " with " + std::to_string(each.shape.num_stages()) +
         " stages and " + std::to_string(each.shape.num_microbatches) + " microbatches";
}

void check_search(const plan_search& search) {
  auto refuse = [](const std::string& problem) { throw bad_input("no plan can be chosen: " + problem); };
  const auto& [stages, microbatches, costs, fixed, bytes] = search.measured;
  check_costs(costs);
  if (search.most_chunks < 1)
    refuse("at most " + std::to_string(search.most_chunks) + " stages a device. Give at least 1");
  if (stages < 1) refuse(std::to_string(stages) + " stages. Give at least 1");
  if (microbatches < 1) refuse(std::to_string(microbatches) + " microbatches. Give at least 1");
  if (search.num_devices < 1) refuse(std::to_string(search.num_devices) + " devices. Give at least 1");
  if (!(fixed >= 0) || fixed > std::min({costs.forward, costs.input_gradient, costs.weight_gradient}))
    refuse("a fixed cost of " + std::to_string(fixed) +
           " is not a part of every duration. Give one from 0 to the shortest of forward, input gradient and "
           "weight gradient");
  for (auto kind : search.kinds)
    if (kind == schedule_kind::forward_only || kind == schedule_kind::custom)
      refuse("a plan of kind " + std::string(to_string(kind)) + " is no schedule of training to choose from");
    else if (schedule_of(kind).steps_order)
      refuse(
          std::string(to_string(kind)) +
          " trains with other gradients than the schedules to choose from, whose bits are the same. Make its "
          "plan without --best");
}

std::vector<int> chunks_of(const schedule_row& row, int most_chunks) {
  if (!row.chunked) return {1};
  if (row.chunked->num_chunks != 0)
    return row.chunked->num_chunks <= most_chunks ? std::vector{row.chunked->num_chunks} : std::vector<int>{};
  std::vector<int> numbers;
  for (int chunks = 2; chunks <= most_chunks; ++chunks) numbers.push_back(chunks);
  return numbers;
}

std::vector<candidate> candidates_of(const plan_search& search) {
  std::vector<candidate> found;
  auto microbatches = search.num_microbatches;
  if (microbatches.empty()) microbatches = {search.measured.num_microbatches};
  for (const auto& row : schedule_table()) {
    bool is_wanted = search.kinds.empty() ? row.kind != schedule_kind::forward_only && !row.steps_order
                                          : std::ranges::count(search.kinds, row.kind) > 0;
    if (!is_wanted) continue;
    for (int chunks : chunks_of(row, search.most_chunks))
      for (int number : microbatches) {
        chunk_shape shape{search.num_devices, chunks, number};
        if (std::int64_t{shape.num_stages()} * number > most_simulated_cells) continue;
        if (row.chunked && row.chunked->objection && !row.chunked->objection(shape).empty()) continue;
        auto expected =
            closed_form_of(row.kind, shape, costs_in(search.measured, shape.num_stages(), number));
        auto bytes = bytes_in(search.measured, shape.num_stages(), number) * expected.peak_activations;
        found.push_back({row.kind, shape, expected, bytes});
      }
  }
  std::ranges::stable_sort(found, {}, [](const candidate& each) {
    return std::pair(each.expected.makespan, each.expected.peak_activations);
  });
  return found;
}

costed_plan simulated(const candidate& chosen, const measured_cut& measured) {
  const auto& shape = chosen.shape;
  costed_plan result;
  result.made = make_plan({.kind = chosen.kind,
                           .num_stages = shape.num_stages(),
                           .num_microbatches = shape.num_microbatches,
                           .num_devices = shape.num_devices});
  result.costs = costs_in(measured, shape.num_stages(), shape.num_microbatches);
  result.bytes_per_chunk = bytes_in(measured, shape.num_stages(), shape.num_microbatches);
  result.ran = simulate(result.made, result.costs);
  return result;
}

/// Of the part of the model that a device has, on the device that keeps most.
double peak_share(const costed_plan& costed) {
  return *std::ranges::max_element(costed.ran.peak_activations) * 1.0 / costed.made.num_stages /
         costed.made.num_microbatches;
}

/// Faster; or as fast, but for rounding, and with fewer activations kept, or fewer stages.
bool is_better(const costed_plan& one, const costed_plan& other) {
  constexpr double rounding = 1e-9;
  if (one.ran.makespan < other.ran.makespan * (1 - rounding)) return true;
  if (one.ran.makespan > other.ran.makespan * (1 + rounding)) return false;
  return std::pair(peak_share(one), one.made.num_stages) <
         std::pair(peak_share(other), other.made.num_stages);
}

}  // namespace

double costed_plan::peak_bytes() const {
  return bytes_per_chunk * *std::ranges::max_element(ran.peak_activations);
}

action_costs costs_in(const measured_cut& measured, int num_stages, int num_microbatches) {
  double share = static_cast<double>(measured.num_stages) / num_stages;
  double part = share * measured.num_microbatches / num_microbatches;
  auto in_part = [&](double cost) { return measured.fixed_cost + (cost - measured.fixed_cost) * part; };
  auto costs = measured.costs;
  costs.forward = in_part(costs.forward);
  costs.input_gradient = in_part(costs.input_gradient);
  costs.weight_gradient = in_part(costs.weight_gradient);
  costs.apply *= share;
  // A tensor between two stages has as many samples as a microbatch, whatever the cut of the model.
  costs.communication *= static_cast<double>(measured.num_microbatches) / num_microbatches;
  return costs;
}

double bytes_in(const measured_cut& measured, int num_stages, int num_microbatches) {
  return measured.bytes_per_chunk * measured.num_stages / num_stages * measured.num_microbatches /
         num_microbatches;
}

costed_plan best_plan(const plan_search& search) {
  check_search(search);
  auto candidates = candidates_of(search);
  if (candidates.empty())
    throw bad_input("no plan can be chosen: none of the schedules allows such numbers of microbatches on " +
                    std::to_string(search.num_devices) + " devices. Use a multiple of " +
                    std::to_string(2 * search.num_devices) + ", or allow more stages a device");
  std::optional<costed_plan> best;
  std::size_t num_simulated = 0;
  for (const auto& each : candidates) {
    if (num_simulated >= num_finalists && best) break;
    if (each.peak_bytes > search.memory) continue;
    ++num_simulated;
    auto plan = simulated(each, search.measured);
    if (plan.peak_bytes() > search.memory) continue;
    if (!best || is_better(plan, *best)) best = std::move(plan);
  }
  if (best) return *std::move(best);
  const auto& least = *std::ranges::min_element(candidates, {}, &candidate::peak_bytes);
  throw bad_input("no schedule fits into " + usage::bytes_text(search.memory) +
                  " a device: " + name_of(least) + " needs least, " + usage::bytes_text(least.peak_bytes) +
                  ", which is " + usage::bytes_text(least.peak_bytes - search.memory) +
                  " more. Give more memory, use more devices, or smaller microbatches");
}

}  // namespace troupe::schedule
