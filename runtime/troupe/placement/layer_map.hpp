#pragma once
#include <string>
#include <vector>

namespace troupe {

/// One entry of a device map: some layers of a model, and the device that computes them.
struct placed_layers {
  /// A layer's name; the beginning of the names of several ("block1" for block1.conv and block1.norm); or a
  /// range of numbers without its end: "transformer.0..12" is transformer.0 to transformer.11.
  std::string layers;
  int device = 0;
  bool operator==(const placed_layers&) const = default;
};

/// The names that an entry stands for, one by one where it is a range. Throws bad_input for an empty name and
/// for what is no range.
std::vector<std::string> names_in(const std::string& layers);

/// The layers with this name or, if there is none, those whose names begin with it and a dot: their indices
/// in `names`.
std::vector<int> layers_named(const std::string& name, const std::vector<std::string>& names);

/// The device of each layer. `names`: of all layers of a model, in order. Throws bad_input, naming them, for
/// layers that the model does not have, that are placed twice or not at all, for a negative device, and for
/// devices without a layer below the highest one.
std::vector<int> devices_of_layers(const std::vector<placed_layers>& map,
                                   const std::vector<std::string>& names);

/// Layers [first, last), which follow each other on one device.
struct layer_run {
  int first = 0;
  int last = 0;
  int device = 0;
  bool operator==(const layer_run&) const = default;
};

/// The longest runs of layers on one device, in order: the stages. A device may have several.
std::vector<layer_run> runs_of(const std::vector<int>& device_of_layer);

}  // namespace troupe
