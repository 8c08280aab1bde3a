#include "prediction.hpp"

#include <cstdio>
#include <sstream>
#include <utility>

#include "troupe/config/apply_yaml.hpp"
#include "troupe/config/job_fields.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/files/printable_text.hpp"
#include "troupe/planning/detail/automatic_placement.hpp"
#include "troupe/profile_job.hpp"
#include "troupe/usage/nearest.hpp"
#include "troupe/usage/number_text.hpp"

namespace troupe {
namespace {

constexpr int most_devices = 1 << 12;
constexpr double least_speed = 1e-6;

/// A job's file may set options that only its program knows. A key that is much like one of a job is a typing
/// error.
bool is_of_program(const std::filesystem::path& file, const config::yaml_setting& setting) {
  std::vector<std::string> known;
  for (const auto& field : config::job_fields()) known.emplace_back(field.name);
  if (!usage::nearest_to(setting.key, known).empty()) return false;
  std::fprintf(stderr, "troupe: %s:%d: key '%s' is no option of every job: left to the program\n",
               file.c_str(), setting.key_line, files::printable(setting.key).c_str());
  return true;
}

job_options job_in(const std::filesystem::path& file) {
  job_options job;
  apply_yaml(file, job,
             {.take = [&file](const config::yaml_setting& setting) { return is_of_program(file, setting); }});
  try {
    check_options(job);
  } catch (const bad_input& problem) {
    throw bad_input(file.string() + ": " + problem.what());
  }
  if (!job.plan.empty())
    throw bad_input(file.string() +
                    ": the stages of a plan file are not placed by a device map. Use troupe "
                    "schedule --plan " +
                    job.plan.string());
  if (job.device_map.empty() && job.stages != 0)
    throw bad_input(file.string() + ": a profile does not say where a model is cut into " +
                    std::to_string(job.stages) +
                    " stages. Name a device_map, or leave stages out for the automatic placement");
  return job;
}

void check_microbatches(const plan_request& request, const job_options& job, const cost_profile& profile) {
  auto samples = job.batch / (job.microbatches * job.replicas);
  if (samples != profile.microbatch_samples)
    throw bad_input(request.profile_file.string() + ": the costs are those of microbatches of " +
                    std::to_string(profile.microbatch_samples) + " samples, but the job's have " +
                    std::to_string(samples) +
                    ". Measure the model with as many, or change batch or microbatches");
}

template <class Value>
Value value_for(const std::vector<Value>& values, std::size_t device, Value otherwise) {
  if (values.empty()) return otherwise;
  return values.size() == 1 ? values.front() : values[device];
}

/// Those of one replica.
std::vector<device_capacity> devices_of(const plan_request& request, int num_devices, int num_replicas) {
  if (num_devices > most_devices)
    throw bad_input(std::to_string(num_devices) + " devices are more than " + std::to_string(most_devices));
  auto count = static_cast<std::size_t>(num_devices);
  auto check = [count, num_replicas](const char* option, std::size_t given) {
    if (given > 1 && given != count)
      throw bad_input(std::string(option) + " has " + std::to_string(given) + " values for " +
                      std::to_string(count) + " devices" + (num_replicas > 1 ? " of each replica" : "") +
                      ". Give one for each, or one for all");
  };
  check("--memory", request.memory.size());
  check("--speed", request.speed.size());
  std::vector<device_capacity> devices;
  for (std::size_t device = 0; device < count; ++device)
    devices.push_back(
        {value_for(request.speed, device, 1.0), value_for(request.memory, device, std::uint64_t{0})});
  for (const auto& each : devices)
    if (!(each.speed >= least_speed && each.speed <= 1 / least_speed)) {
      std::ostringstream got;
      got << each.speed;
      throw bad_input(
          "--speed: expected a number from 0.000001 to 1000000, 1 for a device like the measured one, got " +
          got.str());
    }
  return devices;
}

std::string with_unit(std::uint64_t bytes) { return usage::bytes_text(static_cast<double>(bytes)); }

/// Where and by how much it exceeds the memory of a device; empty if it fits.
std::string memory_problem(const job_prediction& job, const prediction_options& options) {
  std::size_t worst = 0;
  for (std::size_t device = 1; device < job.memory.size(); ++device)
    if (memory_excess(job, options, device) > memory_excess(job, options, worst)) worst = device;
  auto excess = memory_excess(job, options, worst);
  if (excess == 0) return {};
  return "device " + std::to_string(worst) + " would hold " + with_unit(job.memory[worst].peak) +
         ", which is " + with_unit(excess) + " more than its memory";
}

std::string what_would_do(const detail::placed_job& nearest) {
  // To the byte: a rounded number might not do.
  return with_unit(nearest.missing_bytes) +
         (nearest.missing_bytes < 1024 ? "" : " (" + std::to_string(nearest.missing_bytes) + " bytes)") +
         " more for each device would do; or use more devices, smaller microbatches, or nn::Checkpoint";
}

std::string other_placement(const prediction& refused) {
  try {
    auto placed = detail::automatic_placement(refused.profile, refused.options);
    if (placed.missing_bytes == 0) return "The automatic placement fits: leave device_map out";
    return "Nor does the automatic placement: with it, " + what_would_do(placed);
  } catch (const bad_input& problem) {
    return problem.what();
  }
}

void use_device_map(const std::filesystem::path& device_map, prediction& result) {
  result.map = DeviceMap::read(device_map);
  result.job = predict_job(result.profile, result.map, result.options);
  if (auto problem = memory_problem(result.job, result.options); !problem.empty())
    throw bad_input("the job does not fit: " + problem + ". " + other_placement(result));
}

void place_automatically(prediction& result) {
  auto placed = detail::automatic_placement(result.profile, result.options);
  if (placed.missing_bytes > 0)
    throw bad_input(
        "the job does not fit into the memory of the devices. In the automatic placement that comes "
        "nearest, " +
        memory_problem(placed.job, result.options) + ". " + what_would_do(placed));
  result.map = std::move(placed.map);
  result.job = std::move(placed.job);
}

}  // namespace

prediction predict(const plan_request& request) {
  if (request.processes < 1 || request.processes > most_devices)
    throw bad_input("--processes must be at least 1 and at most " + std::to_string(most_devices) + ", got " +
                    std::to_string(request.processes));
  auto options = job_in(request.job_file);
  prediction result{.profile = read_profile(request.profile_file), .map = {}, .options = {}, .job = {}};
  check_microbatches(request, options, result.profile);
  auto num_devices = options.devices * request.processes;
  if (num_devices % options.replicas != 0)
    throw bad_input(
        request.job_file.string() + ": " + std::to_string(options.replicas) + " replicas would share " +
        std::to_string(num_devices) +
        " devices unevenly, which is not predicted. Give a number of --processes that they divide");
  result.options = {.schedule = options.schedule,
                    .num_microbatches = options.microbatches,
                    .devices = devices_of(request, num_devices / options.replicas, options.replicas),
                    .bytes_per_s = request.bytes_per_s,
                    .latency_s = request.latency_s,
                    .num_replicas = options.replicas};
  options.device_map.empty() ? place_automatically(result) : use_device_map(options.device_map, result);
  return result;
}

}  // namespace troupe
