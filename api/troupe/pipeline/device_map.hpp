#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "troupe/nn/graph.hpp"
#include "troupe/pipeline/partition.hpp"
#include "troupe/placement/balance.hpp"
#include "troupe/placement/layer_map.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe {

/// Which device computes which layers of a model: a value, which must be equal in all processes.
///
///     auto map = DeviceMap().layer("embed", 0).layers("transformer.0..12", 1).layer("head", 0);
///     auto pipeline = Pipeline(model).device_map(map);
///
/// Layers that follow each other on one device are a stage; a device may have several. Layers of an
/// nn::Sequential or nn::Graph within the model are named through it ("blocks.3"), and are placed apart from
/// each other if the map names one of them. The bits are those of any other cut. What would change them (a
/// Graph that uses a value several times which also goes around it), and classes derived from the two, are
/// placed as a whole.
///
/// The processes of a job share the devices of its map evenly, in order, also where --devices allows more. Of
/// three devices the first of two processes has 0 and 1; of two devices each process has one.
class DeviceMap {
 public:
  /// Places the layer with this name or, if none has it, those whose names begin with it and a dot. Throws
  /// bad_input for an empty name, a range and a negative device.
  DeviceMap& layer(std::string name, int device);
  /// The same for a range of numbers, without its end: "transformer.0..12" is transformer.0 to
  /// transformer.11. Takes a name too.
  DeviceMap& layers(std::string range, int device);

  /// Reads a YAML file with the line "version: 1", the format's, and one for each name or range:
  /// "transformer.0..12: 1". Throws bad_input with file and line, also for a file of no or another version.
  static DeviceMap read(const std::filesystem::path& file);
  /// The placement that makes the slowest device as fast as possible, within the devices' memory. Times that
  /// are measured differ from process to process, and so would the maps: measure once, save_profile, and let
  /// every process read_profile, or write the map as a file. Throws as balance does.
  static DeviceMap automatic(const cost_profile& profile, const balance_options& options);

  const std::vector<placed_layers>& entries() const { return entries_; }
  /// The file that it was read from; empty: none.
  const std::filesystem::path& file() const { return file_; }
  /// What `read` reads. Throws bad_input for a layer named "version", which no file can place.
  std::string to_yaml() const;

 private:
  std::vector<placed_layers> entries_;
  std::filesystem::path file_;
};

/// A model and its stages as a map places them.
struct placed_model {
  nn::Graph model;  ///< with the layers within, where the map names them
  std::vector<stage_range> partition;
  std::vector<int> device_of_stage;  ///< [partition]
};

/// Throws bad_input, saying what to do, for a map that does not place each layer of the model once
/// (devices_of_layers), and for a stage without parameters.
placed_model place_layers(const nn::Graph& model, const DeviceMap& map);

/// make_plan with the stages that a map places. Throws bad_input as it does, naming the map's file and, for a
/// schedule that places stages itself, those that allow any map.
plan plan_placed_by(const DeviceMap& map, const plan_options& options);

}  // namespace troupe
