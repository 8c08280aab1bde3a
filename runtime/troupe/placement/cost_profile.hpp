#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The memory that the passes of a microbatch through a layer take for a time, in bytes. Peaks count from
/// what was held before the pass: `forward` above the layer's inputs, `input_gradient` above the gradients of
/// its outputs. Changes are what is held after a pass less what was held before.
struct pass_memory {
  std::uint64_t forward_peak = 0;
  std::uint64_t input_gradient_peak = 0;
  std::int64_t input_gradient_change = 0;
  std::uint64_t weight_gradient_peak = 0;
  std::int64_t weight_gradient_change = 0;
  std::uint64_t apply_peak = 0;  ///< of the optimizer's step
  bool operator==(const pass_memory&) const = default;
};

/// What one layer of a model costs. Times are seconds of one microbatch, but for `apply_s`, which is of one
/// step; bytes do not depend on the number of microbatches.
struct layer_cost {
  std::string name;
  double forward_s = 0;
  double input_gradient_s = 0;
  double weight_gradient_s = 0;
  double apply_s = 0;                  ///< seconds of the optimizer's step
  std::uint64_t parameter_bytes = 0;   ///< 0: no stage may consist of such layers alone
  std::uint64_t gradient_bytes = 0;    ///< of the parameters
  std::uint64_t optimizer_bytes = 0;   ///< bytes of the optimizer's state
  std::uint64_t buffer_bytes = 0;      ///< running means and the like
  std::uint64_t activation_bytes = 0;  ///< kept of one microbatch from its forward to its backward
  pass_memory passes = {};
  bool operator==(const layer_cost&) const = default;
};

/// A value that layer `from` computes and layer `to`, a later one, uses: what goes from device to device
/// where they lie apart, and its gradient back. The model's input comes from layer `model_input`.
struct layer_value {
  static constexpr int model_input = -1;
  int from = 0;
  int output = 0;  ///< index of the value among the outputs of `from`
  int to = 0;
  std::uint64_t bytes = 0;  ///< size for one microbatch
  bool operator==(const layer_value&) const = default;
};

/// A weight that layer `layer` shares with `first`, an earlier one, if both are in one stage: its bytes are
/// counted with both.
struct shared_weight {
  int first = 0;
  int layer = 0;
  std::uint64_t parameter_bytes = 0;
  std::uint64_t optimizer_bytes = 0;
  bool operator==(const shared_weight&) const = default;
};

/// What a model costs, measured layer by layer on one device, with microbatches of `microbatch_samples`
/// samples. A value: it is saved as JSON and read again.
struct cost_profile {
  std::int64_t microbatch_samples = 0;
  std::vector<layer_cost> layers = {};   ///< in the model's order
  std::vector<layer_value> values = {};  ///< ascending by to, from, output
  std::vector<shared_weight> shared = {};
  bool operator==(const cost_profile&) const = default;

  std::vector<std::string> names() const;
};

/// Throws bad_input for
/// - layers without names, or two with one name
/// - times that are negative or not finite
/// - values that do not go from a layer to a later one
/// - 2^53 bytes or more in all
void check_profile(const cost_profile& profile);

std::string to_json(const cost_profile& profile);
/// Throws bad_input for what to_json has not written, naming the version if it is another one.
cost_profile profile_from_json(std::string_view text);

}  // namespace troupe
