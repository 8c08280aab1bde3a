#include "troupe/placement/layer_map.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

/// Longer ranges are typing errors.
constexpr int longest_range = 1 << 16;
constexpr std::size_t most_names_shown = 12;

[[noreturn]] void refuse_map(const std::string& problem) { throw bad_input("device map: " + problem); }

bool take_number(std::string_view text, int& number) {
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  return status == std::errc() && end == text.data() + text.size() && number >= 0;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most_names_shown); ++i)
    text += (i ? ", " : "") + names[i];
  if (names.size() > most_names_shown)
    text += " and " + std::to_string(names.size() - most_names_shown) + " more";
  return text;
}

std::string text_of(const placed_layers& entry) {
  return "'" + entry.layers + "' (device " + std::to_string(entry.device) + ")";
}

void require_all_placed(const std::vector<int>& device_of_layer, const std::vector<std::string>& names) {
  std::vector<std::string> missing;
  for (std::size_t layer = 0; layer < names.size(); ++layer)
    if (device_of_layer[layer] < 0) missing.push_back(names[layer]);
  if (!missing.empty())
    refuse_map("no device for " + listed(missing) +
               ". Place every layer of the model; the end of a range is exclusive");
}

void require_no_gap(const std::vector<int>& device_of_layer) {
  if (device_of_layer.empty()) return;
  auto highest = *std::ranges::max_element(device_of_layer);
  for (int device = 0; device < highest; ++device)
    if (!std::ranges::count(device_of_layer, device))
      refuse_map("no layer is on device " + std::to_string(device) + ", but some are on device " +
                 std::to_string(highest) + ". Number devices from 0 on, without gaps");
}

}  // namespace

std::vector<std::string> names_in(const std::string& layers) {
  if (layers.empty())
    refuse_map("an empty name. Name a layer, such as head, or a range, such as blocks.0..6");
  auto dots = layers.find("..");
  if (dots == std::string::npos) return {layers};
  auto before = std::string_view(layers).substr(0, dots), after = std::string_view(layers).substr(dots + 2);
  auto last_dot = before.rfind('.');
  auto prefix = last_dot == std::string_view::npos ? std::string_view() : before.substr(0, last_dot + 1);
  int first = 0, end = 0;
  if (!take_number(before.substr(prefix.size()), first) || !take_number(after, end) || first >= end ||
      end - first > longest_range)
    refuse_map("'" + layers +
               "' is no range. Write the first number and the one after the last: blocks.0..6 is blocks.0 to "
               "blocks.5");
  std::vector<std::string> names;
  for (int number = first; number < end; ++number)
    names.push_back(std::string(prefix) + std::to_string(number));
  return names;
}

std::vector<int> layers_named(const std::string& name, const std::vector<std::string>& names) {
  if (auto found = std::ranges::find(names, name); found != names.end())
    return {static_cast<int>(found - names.begin())};
  std::vector<int> found;
  for (std::size_t layer = 0; layer < names.size(); ++layer)
    if (names[layer].starts_with(name + ".")) found.push_back(static_cast<int>(layer));
  return found;
}

std::vector<int> devices_of_layers(const std::vector<placed_layers>& map,
                                   const std::vector<std::string>& names) {
  std::vector<int> device_of_layer(names.size(), -1);
  std::vector<const placed_layers*> placed_by(names.size(), nullptr);
  for (const auto& entry : map) {
    if (entry.device < 0) refuse_map(text_of(entry) + " is no device. Number devices from 0 on");
    for (const auto& name : names_in(entry.layers)) {
      auto found = layers_named(name, names);
      if (found.empty())
        refuse_map("the model has no layer '" + name + "', which is named by " + text_of(entry) +
                   ". Its layers are " + listed(names));
      for (auto layer : found) {
        auto at = static_cast<std::size_t>(layer);
        if (placed_by[at])
          refuse_map("layer " + names[at] + " is placed by " + text_of(*placed_by[at]) + " and by " +
                     text_of(entry) + ". Place it once; the end of a range is exclusive");
        placed_by[at] = &entry;
        device_of_layer[at] = entry.device;
      }
    }
  }
  require_all_placed(device_of_layer, names);
  require_no_gap(device_of_layer);
  return device_of_layer;
}

std::vector<layer_run> runs_of(const std::vector<int>& device_of_layer) {
  std::vector<layer_run> runs;
  for (std::size_t layer = 0; layer < device_of_layer.size(); ++layer) {
    auto here = static_cast<int>(layer);
    if (runs.empty() || runs.back().device != device_of_layer[layer])
      runs.push_back({here, here, device_of_layer[layer]});
    runs.back().last = here + 1;
  }
  return runs;
}

}  // namespace troupe
