#include "troupe/detail/start/process_devices.hpp"

#include <stdexcept>

#include "troupe/error/errors.hpp"
#include "troupe/ops/numeric_class.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe::detail {
namespace {

/// What to do about a GPU that is not there.
std::string advice_on_gpus(const mesh::process_places& places) {
  if (num_cuda_devices() == 0) return {};
  if (!places.places.counts_from_local_rank()) return ". Name GPUs that each process has";
  return ". --device cuda gives each device of a process a GPU of its own, from LOCAL_RANK * --devices "
         "(here " +
         std::to_string(places.local_rank) + " * " + std::to_string(places.num_devices) +
         ") on: start fewer processes on this host, or use --device cuda:0 to let devices share a GPU, or "
         "where "
         "each process sees one GPU alone (CUDA_VISIBLE_DEVICES)";
}

}  // namespace

mesh::process_places places_of(const job_options& options, int local_rank, bool replaces) {
  mesh::process_places places{mesh::device_places::from_string(options.device), local_rank, options.devices};
  try {
    for (auto gpu : places.gpus()) require_device(gpu);
  } catch (const bad_input& problem) {
    auto text = "--device " + options.device + ": " + problem.what();
    if (replaces) throw std::runtime_error(text + ", which the process that this one replaces had");
    throw bad_input(text + advice_on_gpus(places));
  }
  return places;
}

std::string numeric_class_of(const mesh::process_places& places) {
  auto found = numeric_class();
  device first;
  for (auto gpu : places.gpus()) {
    auto own = numeric_class(gpu);
    if (first == device()) {
      first = gpu;
      found = own;
    } else if (own != found) {
      throw bad_input("--device: " + to_string(first) + " computes as '" + found + "' and " + to_string(gpu) +
                      " as '" + own +
                      "', which may give other bits: use GPUs of one model, and name these (cuda:N)");
    }
  }
  return found;
}

}  // namespace troupe::detail
