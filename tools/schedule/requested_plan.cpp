#include <algorithm>

#include "schedule_request.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/schedule/text/plan_csv.hpp"
#include "troupe/usage/number_text.hpp"

namespace troupe {
namespace {

constexpr int default_stages = 4;
constexpr int most_samples = 1 << 20;

schedule::gather_options gathers_of(const schedule_request& request) {
  bool has_shards = request.shard != "none", is_full = request.shard == "full";
  if (has_shards && request.replicas == 1)
    throw bad_input("--shard " + request.shard + " divides what replicas hold: add --replicas 2 or more");
  if (!is_full && (request.reshard_after != "pass" || request.gather_ahead != 1))
    throw bad_input(
        "--reshard-after and --gather-ahead say when stages hold whole weights, which they always " +
        std::string("do but with --shard full: add that, or leave them out"));
  return {has_shards, is_full, schedule::reshard_point_from(request.reshard_after), request.gather_ahead};
}

plan made_plan(const schedule_request& request) {
  auto kind = schedule_kind_from(request.kind.value_or("1f1b"));
  auto chunks = usual_chunks(kind);
  auto stages =
      request.stages.value_or(request.devices ? std::max(1, *request.devices * chunks) : default_stages);
  return make_plan({.kind = kind,
                    .num_stages = stages,
                    .num_microbatches = request.microbatches,
                    .num_devices = request.devices.value_or(std::max(1, stages / chunks)),
                    .flush_every = request.flush_every,
                    .num_replicas = request.replicas,
                    .gathers = gathers_of(request)});
}

schedule::measured_cut measured_with(const schedule_request& request, int num_stages, int num_microbatches) {
  return {.num_stages = num_stages,
          .num_microbatches = num_microbatches,
          .costs = request.costs,
          .fixed_cost = request.fixed_cost,
          .bytes_per_chunk = static_cast<double>(request.memory_per_chunk.value_or(0))};
}

schedule::plan_search search_on(int num_devices, const schedule::measured_cut& measured,
                                const schedule_request& request) {
  schedule::plan_search search;
  search.measured = measured;
  search.num_devices = num_devices;
  search.most_chunks = request.most_chunks;
  if (request.memory) search.memory = static_cast<double>(*request.memory);
  if (request.batch && (*request.batch < 1 || *request.batch > most_samples))
    throw bad_input("--batch " + std::to_string(*request.batch) + " is no number of samples from 1 to " +
                    std::to_string(most_samples));
  for (int number = 1; number <= request.batch.value_or(0); ++number)
    if (*request.batch % number == 0) search.num_microbatches.push_back(number);
  return search;
}

schedule::costed_plan chosen_plan(const schedule_request& request) {
  auto devices = request.devices.value_or(request.stages.value_or(default_stages));
  auto stages = request.stages.value_or(std::max(1, devices));
  auto search = search_on(devices, measured_with(request, stages, request.microbatches), request);
  if (request.kind) search.kinds = {schedule_kind_from(*request.kind)};
  return best_plan(search);
}

void check_request(const schedule_request& request) {
  for (const auto& [name, file] :
       {std::pair("--plan", request.plan_file), std::pair("--svg", request.svg_file),
        std::pair("--csv", request.csv_file)})
    if (file && file->empty()) throw bad_input(std::string(name) + " names no file");
  if (request.svg_file && request.svg_file == request.csv_file)
    throw bad_input("--svg and --csv would write the same file " + *request.svg_file + ". Name two");
}

/// What would fit instead of a plan that does not.
std::string other_plan(const schedule::costed_plan& refused, const schedule_request& request) {
  auto measured = measured_with(request, refused.made.num_stages, refused.made.num_microbatches);
  try {
    auto fits = best_plan(search_on(refused.made.num_devices(), measured, request));
    return std::string(to_string(fits.made.kind)) + " with " + std::to_string(fits.made.num_stages) +
           " stages and " + std::to_string(fits.made.num_microbatches) + " microbatches fits: it keeps " +
           usage::bytes_text(fits.peak_bytes()) + " at most";
  } catch (const bad_input& problem) {
    return problem.what();
  }
}

void check_memory(const schedule::costed_plan& simulated, const schedule_request& request) {
  if (!request.memory || simulated.peak_bytes() <= static_cast<double>(*request.memory)) return;
  const auto& peaks = simulated.ran.peak_activations;
  auto most = std::ranges::max_element(peaks);
  auto memory = static_cast<double>(*request.memory);
  throw bad_input("the plan does not fit: device " + std::to_string(most - peaks.begin()) + " keeps " +
                  std::to_string(*most) + " activations of " + usage::bytes_text(simulated.bytes_per_chunk) +
                  ", " + usage::bytes_text(simulated.peak_bytes()) + " in all, which is " +
                  usage::bytes_text(simulated.peak_bytes() - memory) + " more than --memory; " +
                  other_plan(simulated, request));
}

}  // namespace

schedule::costed_plan requested_plan(const schedule_request& request) {
  check_request(request);
  if (request.best) return chosen_plan(request);
  schedule::costed_plan result;
  auto replicas = [&](int) {
    return schedule::plan_csv_options{.mesh = {request.replicas}, .gathers = gathers_of(request)};
  };
  result.made =
      request.plan_file ? schedule::read_plan_file(*request.plan_file, replicas) : made_plan(request);
  result.costs = request.costs;
  result.bytes_per_chunk = static_cast<double>(request.memory_per_chunk.value_or(0));
  result.ran = simulate(result.made, result.costs);
  check_memory(result, request);
  return result;
}

}  // namespace troupe
