#include "troupe/placement/balance.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
/// Steps of the dynamic programming: some seconds.
constexpr double most_steps = 1e9;
/// Of its tables: half a GiB.
constexpr double most_cells = 1 << 24;

[[noreturn]] void refuse_balance(const std::string& problem) {
  throw bad_input("automatic placement: " + problem);
}

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

/// What the layers between two cuts cost on a device of speed 1.
struct range_cost {
  double compute_s = 0;
  double transfer_s = 0;
  double fixed_bytes = 0;       ///< parameters, gradients, optimizer, buffers
  double activation_bytes = 0;  ///< of one microbatch
};

/// The costs of all ranges of layers, by the cuts at which they begin and end.
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
        add(profile.layers[static_cast<std::size_t>(layer)], sum);
      for (; value != profile.values.end() && value->to < cuts_[end]; ++value) {
        if (value->from >= cuts_[begin] || !incoming.insert({value->from, value->output}).second) continue;
        incoming_bytes += static_cast<double>(value->bytes);
        takes_other_than_samples |= value->from != layer_value::model_input;
      }
      // What uses the samples alone takes them itself, as the first layers do.
      if (begin > 0 && takes_other_than_samples && options.bytes_per_s > 0)
        sum.transfer_s = 2 * (options.latency_s + incoming_bytes / options.bytes_per_s);
      costs_[begin][end] = sum;
    }
  }

  static void add(const layer_cost& layer, range_cost& sum) {
    sum.compute_s += layer.forward_s + layer.input_gradient_s + layer.weight_gradient_s;
    sum.fixed_bytes += static_cast<double>(layer.parameter_bytes + layer.gradient_bytes +
                                           layer.optimizer_bytes + layer.buffer_bytes);
    sum.activation_bytes += static_cast<double>(layer.activation_bytes);
  }

  std::vector<int> cuts_;
  std::vector<std::vector<range_cost>> costs_;
};

int kept_at(const balance_options& options, std::size_t position) {
  return options.kept_microbatches.empty() ? 1 : options.kept_microbatches[position];
}

double bytes_of(const range_cost& range, int kept_microbatches) {
  return range.fixed_bytes + range.activation_bytes * kept_microbatches;
}

double time_of(const range_cost& range, const device_capacity& device) {
  return range.compute_s / device.speed + range.transfer_s;
}

/// How far a range exceeds the memory of a device; 0 if it fits.
double excess_of(const range_cost& range, int kept_microbatches, const device_capacity& device) {
  if (device.memory_bytes == 0) return 0;
  return std::max(0.0, bytes_of(range, kept_microbatches) - static_cast<double>(device.memory_bytes));
}

/// A chunk as the search finds it.
struct found_chunk {
  std::size_t begin = 0, end = 0;  ///< cuts
  std::size_t kind = 0;
};

/// The sequence of chunks, one for each device, whose largest cost is minimal.
///
/// A state says how many devices of each kind are used, as the digits of a number. best[state][end] is the
/// minimal largest cost of chunks that end at cut `end` and use these devices: the minimum over the last
/// chunk's kind k and first cut b of max(best[state without one k][b], cost of [b, end) on k). Ties take the
/// first kind, then the earliest cut.
class bottleneck_search {
 public:
  /// Of the layers between two cuts on a device of this kind, as chunk number `position`; infinity: not
  /// possible.
  using cost_function =
      std::function<double(std::size_t begin, std::size_t end, std::size_t kind, std::size_t position)>;

  bottleneck_search(const std::vector<device_kind>& kinds, std::size_t num_cuts)
      : kinds_(kinds), num_cuts_(num_cuts) {
    for (const auto& kind : kinds) {
      digit_.push_back(num_states_);
      num_states_ *= kind.devices.size() + 1;
      if (steps() > most_steps || static_cast<double>(num_states_ * num_cuts) > most_cells)
        refuse_balance(
            std::to_string(kinds.size()) + " kinds of devices and " + std::to_string(num_cuts - 1) +
            " layers with parameters are too many to search. Give devices that are nearly alike the same "
            "speed and memory");
    }
  }

  /// Empty if no sequence has a finite cost.
  std::vector<found_chunk> run(const cost_function& cost) {
    best_.assign(num_states_, std::vector(num_cuts_, infinity));
    last_.assign(num_states_, std::vector<found_chunk>(num_cuts_));
    best_[0][0] = 0;
    for (std::size_t state = 1; state < num_states_; ++state)
      for (std::size_t kind = 0; kind < kinds_.size(); ++kind)
        if (used(state, kind) > 0) extend(state, kind, cost);
    return trace();
  }
  double bottleneck() const { return best_.back().back(); }

 private:
  double steps() const {
    auto cuts = static_cast<double>(num_cuts_);
    return static_cast<double>(num_states_) * static_cast<double>(kinds_.size()) * cuts * cuts / 2;
  }

  std::size_t used(std::size_t state, std::size_t kind) const {
    return state / digit_[kind] % (kinds_[kind].devices.size() + 1);
  }

  void extend(std::size_t state, std::size_t kind, const cost_function& cost) {
    auto before = state - digit_[kind];
    std::size_t position = 0;
    for (std::size_t each = 0; each < kinds_.size(); ++each) position += used(before, each);
    for (std::size_t begin = position; begin + 1 < num_cuts_; ++begin) {
      if (best_[before][begin] == infinity) continue;
      for (auto end = begin + 1; end < num_cuts_; ++end) {
        auto candidate = std::max(best_[before][begin], cost(begin, end, kind, position));
        if (candidate >= best_[state][end]) continue;
        best_[state][end] = candidate;
        last_[state][end] = {begin, end, kind};
      }
    }
  }

  std::vector<found_chunk> trace() const {
    std::vector<found_chunk> chunks;
    if (bottleneck() == infinity) return chunks;
    auto state = num_states_ - 1;
    for (auto end = num_cuts_ - 1; end > 0; end = chunks.back().begin) {
      chunks.push_back(last_[state][end]);
      state -= digit_[chunks.back().kind];
    }
    std::ranges::reverse(chunks);
    return chunks;
  }

  const std::vector<device_kind>& kinds_;
  std::size_t num_cuts_;
  std::size_t num_states_ = 1;
  std::vector<std::size_t> digit_;              // [kind] of what one device adds to a state
  std::vector<std::vector<double>> best_;       // [state][cut]
  std::vector<std::vector<found_chunk>> last_;  // [state][cut]
};

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
  if (!(options.bytes_per_s >= 0) || !(options.latency_s >= 0))
    refuse_balance("a negative bandwidth or latency. Give numbers from 0 on");
}

std::string in_bytes(double bytes) {
  return std::to_string(static_cast<std::uint64_t>(std::ceil(bytes))) + " bytes";
}

/// Throws: by how much the placement that comes nearest does not fit, and what would.
[[noreturn]] void refuse_memory(const cost_profile& profile, bottleneck_search& search,
                                const range_costs& ranges, const std::vector<device_kind>& kinds,
                                const balance_options& options) {
  auto name_of = [&profile](int layer) { return profile.layers[static_cast<std::size_t>(layer)].name; };
  auto nearest = search.run([&](std::size_t begin, std::size_t end, std::size_t kind, std::size_t position) {
    return excess_of(ranges.at(begin, end), kept_at(options, position), kinds[kind].capacity);
  });
  auto missing = search.bottleneck();
  std::string where;
  for (std::size_t position = 0; position < nearest.size() && where.empty(); ++position) {
    const auto& [begin, end, kind] = nearest[position];
    const auto& range = ranges.at(begin, end);
    auto kept = kept_at(options, position);
    if (excess_of(range, kept, kinds[kind].capacity) == missing)
      where = "layers " + name_of(ranges.cuts()[begin]) + " to " + name_of(ranges.cuts()[end] - 1) +
              " need " + in_bytes(bytes_of(range, kept)) + " on a device that has " +
              in_bytes(static_cast<double>(kinds[kind].capacity.memory_bytes));
  }
  refuse_balance(
      "the model does not fit into the memory of the devices. In the placement that comes nearest, " + where +
      ", which is " + in_bytes(missing) + " too few. " + in_bytes(missing) +
      " more for each device would do; or use more devices, smaller microbatches, or nn::Checkpoint");
}

}  // namespace

std::vector<layer_chunk> balance(const cost_profile& profile, const balance_options& options) {
  check_profile(profile);
  if (!std::ranges::is_sorted(profile.values, {}, &layer_value::to))
    refuse_balance("the values of the profile are not in ascending order of the layers that use them");
  if (static_cast<double>(profile.layers.size() * profile.layers.size()) > most_cells)
    refuse_balance(std::to_string(profile.layers.size()) + " layers are too many to search");
  range_costs ranges(profile, options);
  check_balance_options(options, ranges.cuts().size() - 1);
  auto kinds = kinds_of(options.devices);
  bottleneck_search search(kinds, ranges.cuts().size());
  auto found = search.run([&](std::size_t begin, std::size_t end, std::size_t kind, std::size_t position) {
    const auto& range = ranges.at(begin, end);
    const auto& device = kinds[kind].capacity;
    return excess_of(range, kept_at(options, position), device) > 0 ? infinity : time_of(range, device);
  });
  if (found.empty()) refuse_memory(profile, search, ranges, kinds, options);
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
