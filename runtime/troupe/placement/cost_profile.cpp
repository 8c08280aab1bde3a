#include "troupe/placement/cost_profile.hpp"

#include <cmath>
#include <set>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/json/read_json.hpp"

namespace troupe {
namespace {

constexpr int profile_version = 2;
/// Beyond, a double does not hold each whole number.
constexpr auto most_bytes = static_cast<double>(std::uint64_t{1} << 53);
constexpr auto profile_kind = "troupe cost profile";

using json = nlohmann::ordered_json;

[[noreturn]] void refuse_profile(const std::string& problem) { throw bad_input("cost profile: " + problem); }

json to_object(const layer_cost& layer) {
  return {{"name", layer.name},
          {"forward_s", layer.forward_s},
          {"input_gradient_s", layer.input_gradient_s},
          {"weight_gradient_s", layer.weight_gradient_s},
          {"apply_s", layer.apply_s},
          {"parameter_bytes", layer.parameter_bytes},
          {"gradient_bytes", layer.gradient_bytes},
          {"optimizer_bytes", layer.optimizer_bytes},
          {"buffer_bytes", layer.buffer_bytes},
          {"activation_bytes", layer.activation_bytes},
          {"forward_peak_bytes", layer.passes.forward_peak},
          {"input_gradient_peak_bytes", layer.passes.input_gradient_peak},
          {"input_gradient_change_bytes", layer.passes.input_gradient_change},
          {"weight_gradient_peak_bytes", layer.passes.weight_gradient_peak},
          {"weight_gradient_change_bytes", layer.passes.weight_gradient_change},
          {"apply_peak_bytes", layer.passes.apply_peak}};
}

template <class Number>
bool holds(const json& value) {
  if (value.is_number_unsigned()) return std::in_range<Number>(value.get<std::uint64_t>());
  return value.is_number_integer() && std::in_range<Number>(value.get<std::int64_t>());
}

/// A whole number that `Number` holds.
template <class Number>
Number number_from(const json& object, const char* key) {
  const auto& value = object.at(key);
  if (!holds<Number>(value))
    refuse_profile("expected a whole number as " + std::string(key) + ", got " + value.dump());
  return value.get<Number>();
}

layer_cost layer_from(const json& object) {
  auto bytes = [&object](const char* key) { return number_from<std::uint64_t>(object, key); };
  return {
      .name = object.at("name").get<std::string>(),
      .forward_s = object.at("forward_s").get<double>(),
      .input_gradient_s = object.at("input_gradient_s").get<double>(),
      .weight_gradient_s = object.at("weight_gradient_s").get<double>(),
      .apply_s = object.at("apply_s").get<double>(),
      .parameter_bytes = bytes("parameter_bytes"),
      .gradient_bytes = bytes("gradient_bytes"),
      .optimizer_bytes = bytes("optimizer_bytes"),
      .buffer_bytes = bytes("buffer_bytes"),
      .activation_bytes = bytes("activation_bytes"),
      .passes = {.forward_peak = bytes("forward_peak_bytes"),
                 .input_gradient_peak = bytes("input_gradient_peak_bytes"),
                 .input_gradient_change = number_from<std::int64_t>(object, "input_gradient_change_bytes"),
                 .weight_gradient_peak = bytes("weight_gradient_peak_bytes"),
                 .weight_gradient_change = number_from<std::int64_t>(object, "weight_gradient_change_bytes"),
                 .apply_peak = bytes("apply_peak_bytes")}};
}

layer_value value_from(const json& object) {
  return {number_from<int>(object, "from"), number_from<int>(object, "output"),
          number_from<int>(object, "to"), number_from<std::uint64_t>(object, "bytes")};
}

void require_known(const json& object) {
  if (!object.is_object() || object.value("kind", "") != profile_kind)
    refuse_profile("expected a file that --write-profile of a training program has written, got another one");
  if (auto found = number_from<int>(object, "version"); found != profile_version)
    refuse_profile("expected version " + std::to_string(profile_version) + ", got " + std::to_string(found) +
                   ": measure the model again");
}

}  // namespace

std::vector<std::string> cost_profile::names() const {
  std::vector<std::string> result;
  for (const auto& layer : layers) result.push_back(layer.name);
  return result;
}

void check_profile(const cost_profile& profile) {
  if (profile.layers.empty()) refuse_profile("it has no layers");
  if (profile.microbatch_samples < 1)
    refuse_profile("expected microbatches of at least 1 sample, got " +
                   std::to_string(profile.microbatch_samples));
  std::set<std::string> names;
  double all_bytes = 0;
  for (const auto& layer : profile.layers) {
    for (auto bytes : {layer.parameter_bytes, layer.gradient_bytes, layer.optimizer_bytes, layer.buffer_bytes,
                       layer.activation_bytes, layer.passes.forward_peak, layer.passes.input_gradient_peak,
                       layer.passes.weight_gradient_peak, layer.passes.apply_peak})
      all_bytes += static_cast<double>(bytes);
    for (auto bytes : {layer.passes.input_gradient_change, layer.passes.weight_gradient_change})
      all_bytes += std::fabs(static_cast<double>(bytes));
    if (layer.name.empty() || !names.insert(layer.name).second)
      refuse_profile("expected a name of its own for each layer, got '" + layer.name + "'");
    for (auto seconds : {layer.forward_s, layer.input_gradient_s, layer.weight_gradient_s, layer.apply_s})
      if (!std::isfinite(seconds) || seconds < 0)
        refuse_profile("expected times from 0 on of layer " + layer.name + ", got " +
                       std::to_string(seconds));
  }
  for (const auto& [first, layer, parameter_bytes, optimizer_bytes] : profile.shared) {
    bool is_known = 0 <= first && first < layer && layer < static_cast<int>(profile.layers.size());
    if (is_known) {
      const auto& of = profile.layers[static_cast<std::size_t>(layer)];
      if (parameter_bytes <= of.parameter_bytes && optimizer_bytes <= of.optimizer_bytes) continue;
    }
    refuse_profile(
        "expected weights that a layer shares with an earlier one, no more than it has, got one of " +
        std::to_string(parameter_bytes) + " bytes of layers " + std::to_string(first) + " and " +
        std::to_string(layer));
  }
  for (const auto& value : profile.values) all_bytes += static_cast<double>(value.bytes);
  if (all_bytes >= most_bytes) refuse_profile("expected less than 2^53 bytes in all, got more");
  for (const auto& value : profile.values)
    if (value.from < layer_value::model_input || value.from >= value.to || value.output < 0 ||
        value.to >= static_cast<int>(profile.layers.size()))
      refuse_profile("expected values that go from one of " + std::to_string(profile.layers.size()) +
                     " layers to a later one, got one from layer " + std::to_string(value.from) + " to " +
                     std::to_string(value.to));
}

std::string to_json(const cost_profile& profile) {
  json object = {{"kind", profile_kind},
                 {"version", profile_version},
                 {"microbatch_samples", profile.microbatch_samples}};
  object["layers"] = json::array();
  for (const auto& layer : profile.layers) object["layers"].push_back(to_object(layer));
  object["values"] = json::array();
  for (const auto& [from, output, to, bytes] : profile.values)
    object["values"].push_back({{"from", from}, {"output", output}, {"to", to}, {"bytes", bytes}});
  object["shared_weights"] = json::array();
  for (const auto& [first, layer, parameter_bytes, optimizer_bytes] : profile.shared)
    object["shared_weights"].push_back({{"first", first},
                                        {"layer", layer},
                                        {"parameter_bytes", parameter_bytes},
                                        {"optimizer_bytes", optimizer_bytes}});
  return object.dump(1) + "\n";
}

cost_profile profile_from_json(std::string_view text) {
  constexpr int deepest_nesting = 16;
  try {
    return json_text::read_json(text, deepest_nesting, [](const json& object) {
      require_known(object);
      cost_profile profile{.microbatch_samples = number_from<std::int64_t>(object, "microbatch_samples")};
      for (const auto& layer : object.at("layers")) profile.layers.push_back(layer_from(layer));
      for (const auto& value : object.at("values")) profile.values.push_back(value_from(value));
      for (const auto& shared : object.at("shared_weights"))
        profile.shared.push_back({number_from<int>(shared, "first"), number_from<int>(shared, "layer"),
                                  number_from<std::uint64_t>(shared, "parameter_bytes"),
                                  number_from<std::uint64_t>(shared, "optimizer_bytes")});
      check_profile(profile);
      return profile;
    });
  } catch (const json_text::json_error& problem) {
    refuse_profile(
        "expected a file that --write-profile of a training program has written, got one that is none: " +
        std::string(problem.what()));
  }
}

}  // namespace troupe
