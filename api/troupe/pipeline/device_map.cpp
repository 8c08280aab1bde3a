#include "troupe/pipeline/device_map.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "troupe/config/yaml_settings.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/nn/detail/nested_layers.hpp"

namespace troupe {
namespace {

void require_device(const std::string& layers, int device) {
  if (device < 0)
    throw bad_input("device map: '" + layers + "' is placed on device " + std::to_string(device) +
                    ". Number devices from 0 on");
}

int device_from(const std::filesystem::path& file, const config::yaml_setting& setting) {
  int device = 0;
  const auto* end = setting.value.data() + setting.value.size();
  auto [stop, status] = std::from_chars(setting.value.data(), end, device);
  if (status != std::errc() || stop != end || device < 0)
    config::refuse_at_line(
        file, setting.value_line,
        "'" + setting.key + "': expected the number of a device, from 0 on, got '" + setting.value + "'");
  return device;
}

constexpr auto version_key = "version";
constexpr int map_version = 1;

/// A map names its format, so that none is read as what it is not.
void require_version(const std::filesystem::path& file, const std::vector<config::yaml_setting>& settings) {
  auto expected = std::to_string(map_version);
  auto found = std::ranges::find(settings, version_key, &config::yaml_setting::key);
  if (found == settings.end())
    config::refuse_at_line(file, 1,
                           "expected the line 'version: " + expected +
                               "', which says in what format the device map is, got none. Add it");
  if (found->value != expected)
    config::refuse_at_line(file, found->value_line,
                           "expected version " + expected + " of the format of device maps, got '" +
                               found->value + "'. Write the map in version " + expected +
                               ", or use the Troupe that it is for");
}

/// The node that has to be taken apart to find layer `name`; none if that is there, or nowhere.
std::optional<int> node_around(const std::string& name, const nn::Graph& model) {
  if (!layers_named(name, model.names()).empty()) return {};
  for (int node = 0; node < model.size(); ++node)
    if (name.starts_with(model.prefix_of(node))) return node;
  return {};
}

/// The model with the layers within that the map names.
nn::Graph with_named_layers(nn::Graph model, const DeviceMap& map) {
  for (const auto& entry : map.entries())
    for (const auto& name : names_in(entry.layers))
      while (auto node = node_around(name, model)) try {
          model = nn::detail::with_nested_layers(model, *node);
        } catch (const bad_input& problem) {
          throw bad_input("device map: no layer '" + name + "' can be placed: " + problem.what());
        }
  return model;
}

placed_model placed(const nn::Graph& original, const DeviceMap& map) {
  placed_model result{.model = with_named_layers(original, map), .partition = {}, .device_of_stage = {}};
  std::vector<std::string> first_nodes;
  for (const auto& run : runs_of(devices_of_layers(map.entries(), result.model.names()))) {
    if (run.first > 0) first_nodes.push_back(result.model.name_of(run.first));
    result.device_of_stage.push_back(run.device);
  }
  result.partition = partition_at(result.model, first_nodes);
  return result;
}

}  // namespace

DeviceMap& DeviceMap::layer(std::string name, int device) {
  if (names_in(name).size() != 1 || name.find("..") != std::string::npos)
    throw bad_input("device map: '" + name + "' is a range. Use layers(), or name one layer");
  return layers(std::move(name), device);
}

DeviceMap& DeviceMap::layers(std::string range, int device) {
  names_in(range);
  require_device(range, device);
  entries_.push_back({std::move(range), device});
  return *this;
}

DeviceMap DeviceMap::read(const std::filesystem::path& file) {
  DeviceMap map;
  auto settings = config::read_yaml_settings(file, "device map");
  if (!settings.empty()) require_version(file, settings);
  for (const auto& setting : settings) {
    if (setting.key == version_key) continue;
    auto device = device_from(file, setting);
    try {
      map.layers(setting.key, device);
    } catch (const bad_input& problem) {
      config::refuse_at_line(file, setting.key_line, problem.what());
    }
  }
  if (map.entries_.empty())
    throw bad_input(file.string() +
                    ": the device map is empty. Write the line 'version: 1', and one for each layer or "
                    "range, such as blocks.0..6: 1");
  map.file_ = file;
  return map;
}

DeviceMap DeviceMap::automatic(const cost_profile& profile, const balance_options& options) {
  DeviceMap map;
  for (const auto& chunk : balance(profile, options))
    for (int layer = chunk.first; layer < chunk.last; ++layer)
      map.layer(profile.layers[static_cast<std::size_t>(layer)].name, chunk.device);
  return map;
}

std::string DeviceMap::to_yaml() const {
  auto text = std::string(version_key) + ": " + std::to_string(map_version) + "\n";
  for (const auto& [layers, device] : entries_) {
    if (layers == version_key)
      throw bad_input(
          "device map: a layer with the name 'version' cannot be written into a file, where "
          "that is the version of the format. Give the layer another name, or place it in C++");
    text += config::yaml_key(layers) + ": " + std::to_string(device) + "\n";
  }
  return text;
}

placed_model place_layers(const nn::Graph& model, const DeviceMap& map) {
  try {
    return placed(model, map);
  } catch (const bad_input& problem) {
    if (map.file().empty()) throw;
    throw bad_input(map.file().string() + ": " + problem.what());
  }
}

plan plan_placed_by(const DeviceMap& map, const plan_options& options) {
  try {
    return make_plan(options);
  } catch (const bad_input& problem) {
    auto where = (map.file().empty() ? "device map" : map.file().string()) + ": ";
    if (usual_chunks(options.kind) == 1) throw bad_input(where + problem.what());
    throw bad_input(where + std::string(to_string(options.kind)) +
                    " places the stages itself, in a way of its own: " + problem.what() +
                    ". Choose gpipe, 1f1b, zb_h1, zb_h2 or pipedream_2bw, which allow any device map, or "
                    "leave the map out");
  }
}

}  // namespace troupe
