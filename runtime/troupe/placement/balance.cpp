#include "troupe/placement/balance.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "troupe/placement/bottleneck_search.hpp"

namespace troupe {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
/// Costs of ranges of layers: half a GiB.
constexpr std::size_t most_ranges = 1 << 24;

constexpr auto refused_by = "automatic placement: ";

[[noreturn]] void refuse_balance(const std::string& problem) { throw bad_input(refused_by + problem); }

/// Devices that are alike.
struct device_kind {
  device_capacity capacity;
  std::vector<int> devices;  ///< ascending
};

std::vector<device_kind> kinds_of(const std::vector<device_capacity>& devices) {
  std::vector<device_kind> kinds;
  for (std::size_t device = 0; device < devices.size(); ++device) {
    auto found = std::ranges::find(kinds, devices[device], &device_kind::capacity);
    if (found == kinds.end()) found = kinds.insert(kinds.end(), {devices[device], {}});
    found->devices.push_back(static_cast<int>(device));
  }
  return kinds;
}

std::vector<std::size_t> sizes_of(const std::vector<device_kind>& kinds) {
  std::vector<std::size_t> sizes;
  for (const auto& kind : kinds) sizes.push_back(kind.devices.size());
  return sizes;
}

/// The layers with which chunks may begin, and the end of the model.
std::vector<int> possible_cuts(const cost_profile& profile) {
  std::vector<int> cuts{0};
  bool has_parameters = false;
  for (std::size_t layer = 0; layer < profile.layers.size(); ++layer) {
    if (profile.layers[layer].parameter_bytes == 0) continue;
    if (has_parameters) cuts.push_back(static_cast<int>(layer));
    has_parameters = true;
  }
  cuts.push_back(static_cast<int>(profile.layers.size()));
  return cuts;
}

/// What the layers between two cuts cost in a step.
struct range_cost {
  double work_s = 0;  ///< on a device of speed 1
  double transfer_s = 0;
  double fixed_bytes = 0;  ///< parameters, gradients, optimizer, buffers
  double kept_bytes = 0;   ///< of one microbatch: activations, and the values that come in
};

/// The costs of all ranges of layers, by the cuts at which they begin and end. None of them decreases with
/// the end.
class range_costs {
 public:
  range_costs(const cost_profile& profile, const balance_options& options)
      : cuts_(possible_cuts(profile)), costs_(cuts_.size(), std::vector<range_cost>(cuts_.size())) {
    for (std::size_t begin = 0; begin + 1 < cuts_.size(); ++begin) add_from(begin, profile, options);
  }

  const std::vector<int>& cuts() const { return cuts_; }
  const range_cost& at(std::size_t begin, std::size_t end) const { return costs_[begin][end]; }

 private:
  /// Values of earlier layers come in once each, and their gradients go back.
  void add_from(std::size_t begin, const cost_profile& profile, const balance_options& options) {
    range_cost sum;
    double incoming_bytes = 0;
    std::set<std::pair<int, int>> incoming;
    bool takes_other_than_samples = false;
    auto value = std::ranges::lower_bound(profile.values, cuts_[begin], {}, &layer_value::to);
    for (auto end = begin + 1; end < cuts_.size(); ++end) {
      for (auto layer = cuts_[end - 1]; layer < cuts_[end]; ++layer)
        add(profile.layers[static_cast<std::size_t>(layer)], options.num_microbatches, sum);
      for (; value != profile.values.end() && value->to < cuts_[end]; ++value) {
        if (value->from >= cuts_[begin] || !incoming.insert({value->from, value->output}).second) continue;
        incoming_bytes += static_cast<double>(value->bytes);
        takes_other_than_samples |= value->from != layer_value::model_input;
      }
      // What uses the samples alone takes them itself, as the first layers do.
      if (begin > 0 && takes_other_than_samples)
        sum.transfer_s = options.num_microbatches * transfer_s(incoming_bytes, options);
      costs_[begin][end] = sum;
      costs_[begin][end].kept_bytes += incoming_bytes;
    }
  }

  static double transfer_s(double bytes, const balance_options& options) {
    return 2 * (options.latency_s + (options.bytes_per_s > 0 ? bytes / options.bytes_per_s : 0));
  }

  static void add(const layer_cost& layer, int num_microbatches, range_cost& sum) {
    sum.work_s += num_microbatches * (layer.forward_s + layer.input_gradient_s + layer.weight_gradient_s) +
                  layer.apply_s;
    for (auto bytes :
         {layer.parameter_bytes, layer.gradient_bytes, layer.optimizer_bytes, layer.buffer_bytes})
      sum.fixed_bytes += static_cast<double>(bytes);
    sum.kept_bytes += static_cast<double>(layer.activation_bytes);
  }

  std::vector<int> cuts_;
  std::vector<std::vector<range_cost>> costs_;
};

int kept_at(const balance_options& options, std::size_t position) {
  return options.kept_microbatches.empty() ? 1 : options.kept_microbatches[position];
}

double bytes_of(const range_cost& range, int kept_microbatches) {
  return range.fixed_bytes + range.kept_bytes * kept_microbatches;
}

double time_of(const range_cost& range, const device_capacity& device) {
  return range.work_s / device.speed + range.transfer_s;
}

/// How far a range exceeds the memory of a device; 0 if it fits.
double excess_of(const range_cost& range, int kept_microbatches, const device_capacity& device) {
  if (device.memory_bytes == 0) return 0;
  return std::max(0.0, bytes_of(range, kept_microbatches) - static_cast<double>(device.memory_bytes));
}

/// [cuts] What the layers before each cut take, by one of the costs of ranges.
std::vector<double> amount_before(const range_costs& ranges, double range_cost::*amount) {
  std::vector<double> sums{0};
  for (std::size_t end = 1; end < ranges.cuts().size(); ++end) sums.push_back(ranges.at(0, end).*amount);
  return sums;
}

void check_balance_options(const balance_options& options, std::size_t num_pieces) {
  if (options.devices.empty()) refuse_balance("no devices. Give at least one");
  for (std::size_t device = 0; device < options.devices.size(); ++device)
    if (auto speed = options.devices[device].speed; !std::isfinite(speed) || speed <= 0)
      refuse_balance("device " + std::to_string(device) + " has the speed " + std::to_string(speed) +
                     ". Give a number above 0");
  if (options.devices.size() > num_pieces)
    refuse_balance(std::to_string(options.devices.size()) + " devices for " + std::to_string(num_pieces) +
                   " layers with parameters. Use at most as many devices");
  if (!options.kept_microbatches.empty() && options.kept_microbatches.size() != options.devices.size())
    refuse_balance("numbers of kept microbatches for " + std::to_string(options.kept_microbatches.size()) +
                   " of " + std::to_string(options.devices.size()) + " stages. Give one for each, or none");
  for (auto kept : options.kept_microbatches)
    if (kept < 1) refuse_balance(std::to_string(kept) + " kept microbatches of a stage. Give at least 1");
  if (options.num_microbatches < 1)
    refuse_balance(std::to_string(options.num_microbatches) + " microbatches. Give at least 1");
  for (auto number : {options.bytes_per_s, options.latency_s})
    if (!std::isfinite(number) || number < 0)
      refuse_balance("a bandwidth or latency of " + std::to_string(number) +
                     ". Give finite numbers from 0 on; a bandwidth of 0 is no limit");
}

std::uint64_t whole_bytes(double bytes) { return static_cast<std::uint64_t>(std::ceil(bytes)); }

std::string in_bytes(double bytes) { return std::to_string(whole_bytes(bytes)) + " bytes"; }

std::vector<placement::found_chunk> search_time(const std::vector<device_kind>& kinds,
                                                const range_costs& ranges, const balance_options& options) {
  placement::search_costs costs;
  costs.cost = [&](std::size_t begin, std::size_t end, std::size_t kind, std::size_t position) {
    const auto& range = ranges.at(begin, end);
    const auto& device = kinds[kind].capacity;
    return excess_of(range, kept_at(options, position), device) > 0 ? infinity : time_of(range, device);
  };
  costs.amount_before = amount_before(ranges, &range_cost::work_s);
  costs.capacity = [&](std::size_t kind, double time_s) { return time_s * kinds[kind].capacity.speed; };
  double speed = 0;
  for (const auto& device : options.devices) speed += device.speed;
  // As if layers could be cut anywhere.
  costs.start = costs.amount_before.back() / speed;
  costs.step = std::max(costs.start / 64, 1e-9);
  return least_bottleneck(sizes_of(kinds), ranges.cuts().size() - 1, costs);
}

/// The placement that comes nearest to the memory that there is.
std::vector<placement::found_chunk> search_memory(const std::vector<device_kind>& kinds,
                                                  const range_costs& ranges, const balance_options& options) {
  placement::search_costs costs;
  costs.cost = [&](std::size_t begin, std::size_t end, std::size_t kind, std::size_t position) {
    return excess_of(ranges.at(begin, end), kept_at(options, position), kinds[kind].capacity);
  };
  costs.amount_before = amount_before(ranges, &range_cost::fixed_bytes);
  costs.capacity = [&](std::size_t kind, double excess) {
    auto bytes = kinds[kind].capacity.memory_bytes;
    return bytes == 0 ? infinity : static_cast<double>(bytes) + excess;
  };
  costs.step = 4096;
  return least_bottleneck(sizes_of(kinds), ranges.cuts().size() - 1, costs);
}

/// Throws: by how much the placement that comes nearest does not fit, and what would.
[[noreturn]] void refuse_memory(const cost_profile& profile, const range_costs& ranges,
                                const std::vector<device_kind>& kinds, const balance_options& options) {
  auto name_of = [&profile](int layer) { return profile.layers[static_cast<std::size_t>(layer)].name; };
  auto nearest = search_memory(kinds, ranges, options);
  double missing = 0;
  std::string where;
  for (std::size_t position = 0; position < nearest.size(); ++position) {
    const auto& [begin, end, kind] = nearest[position];
    const auto& range = ranges.at(begin, end);
    auto kept = kept_at(options, position);
    auto excess = excess_of(range, kept, kinds[kind].capacity);
    if (excess <= missing) continue;
    missing = excess;
    where = "layers " + name_of(ranges.cuts()[begin]) + " to " + name_of(ranges.cuts()[end] - 1) + " need " +
            in_bytes(bytes_of(range, kept)) + " on a device that has " +
            in_bytes(static_cast<double>(kinds[kind].capacity.memory_bytes));
  }
  throw memory_shortage(
      std::string(refused_by) +
          "the model does not fit into the memory of the devices. In the placement that comes nearest, " +
          where + ", which is " + in_bytes(missing) + " too few. " + in_bytes(missing) +
          " more for each device would do; or use more devices, smaller microbatches, or nn::Checkpoint",
      whole_bytes(missing));
}

}  // namespace

std::vector<layer_chunk> balance(const cost_profile& profile, const balance_options& options) {
  check_profile(profile);
  if (!std::ranges::is_sorted(profile.values, {}, &layer_value::to))
    refuse_balance("the values of the profile are not in ascending order of the layers that use them");
  auto num_pieces = possible_cuts(profile).size() - 1;
  check_balance_options(options, num_pieces);
  auto kinds = kinds_of(options.devices);
  if ((num_pieces + 1) * (num_pieces + 1) > most_ranges ||
      !placement::can_search(sizes_of(kinds), num_pieces))
    refuse_balance(std::to_string(num_pieces) + " layers with parameters and " +
                   std::to_string(kinds.size()) +
                   " kinds of devices are too many to search. Give devices that are nearly alike the same "
                   "speed and memory");
  range_costs ranges(profile, options);
  auto found = search_time(kinds, ranges, options);
  if (found.empty()) refuse_memory(profile, ranges, kinds, options);
  std::vector<layer_chunk> chunks;
  std::vector<std::size_t> num_used(kinds.size(), 0);
  for (std::size_t position = 0; position < found.size(); ++position) {
    const auto& [begin, end, kind] = found[position];
    const auto& range = ranges.at(begin, end);
    chunks.push_back({ranges.cuts()[begin], ranges.cuts()[end], kinds[kind].devices[num_used[kind]++],
                      time_of(range, kinds[kind].capacity),
                      static_cast<std::uint64_t>(bytes_of(range, kept_at(options, position)))});
  }
  return chunks;
}

}  // namespace troupe
