#include "troupe/pipeline/detail/agreement/describe_pipeline.hpp"

#include <utility>

#include "troupe/config/job_fields.hpp"
#include "troupe/error/type_name.hpp"
#include "troupe/pipeline/detail/agreement/function_fingerprint.hpp"
#include "troupe/pipeline/detail/agreement/layer_modes.hpp"
#include "troupe/pipeline/detail/agreement/training_settings.hpp"

namespace troupe::detail {
namespace {

std::string text_of(const parameter& each) {
  auto text = to_string(each.extents) + ", begins " + fingerprint(each.init, each.extents);
  if (!each.requires_gradient) text += ", frozen";
  if (!each.tied_to.empty()) text += ", the same as " + each.tied_to;
  return text;
}

std::string text_of(const DeviceMap& map) {
  std::string text;
  for (const auto& [layers, device] : map.entries())
    text += (text.empty() ? "" : ", ") + layers + " on device " + std::to_string(device);
  return text;
}

/// What joins the nodes.
void describe_edges(const nn::Graph& graph, const std::string& prefix, agreement::job_description& into) {
  for (int node = 0; node < graph.size(); ++node)
    into.add("inputs of " + prefix + graph.name_of(node), graph.inputs_text(node));
  into.add("outputs " + prefix, graph.outputs_text());
}

/// Describes `module` and its children; `path` has no trailing dot.
void describe(nn::Module& module, const std::string& path, agreement::job_description& into) {
  auto inner = path.empty() ? path : path + ".";
  into.add("module " + path, type_name(typeid(module)));
  module.each_parameter([&](parameter& each) { into.add("parameter " + inner + each.name, text_of(each)); });
  module.each_buffer([&](nn::buffer& each) {
    into.add("buffer " + inner + each.name,
             to_string(each.extents) + ", begins " + std::to_string(each.initial_value));
  });
  module.each_child([&](const std::string& name, nn::Module& child) {
    describe(child, name.empty() ? path : inner + name, into);
  });
  if (const auto* graph = dynamic_cast<const nn::Graph*>(&module)) describe_edges(*graph, inner, into);
}

void describe(const numeric_options& numerics, agreement::job_description& into) {
  into.add("precision", std::string(to_string(numerics.precision)));
  into.add("clip_grad_norm", std::to_string(numerics.clip_grad_norm));
  job_options exchanged;
  static_cast<replica_exchange_options&>(exchanged) = numerics.exchange;
  for (auto name : replica_exchange_fields)
    into.add(std::string(name), config::find_job_field(name)->text(exchanged));
  const auto& scale = numerics.loss_scale;
  into.add("loss_scale", std::to_string(scale.initial_scale) + ", times " +
                             std::to_string(scale.growth_factor) + " every " +
                             std::to_string(scale.growth_interval) + ", " +
                             std::to_string(scale.backoff_factor) + " on overflow, at least " +
                             std::to_string(scale.least_scale));
}

}  // namespace

void describe_pipeline(const Pipeline& pipeline, agreement::job_description& into) {
  describe(pipeline.numerics(), into);
  for (auto& [name, value] : training_settings(pipeline.optimizer(), pipeline.loss()))
    into.add(name, std::move(value));
  into.add("parameters", std::to_string(pipeline.model().num_parameters()));
  into.add("layers in evaluation mode", text_of(modes_of(pipeline.model())));
  auto cuts = pipeline.cuts_text();
  into.add("stages begin with", cuts.empty() ? "nodes of equal cost" : cuts);
  into.add("device map", pipeline.device_map() ? text_of(*pipeline.device_map()) : "none");
  nn::Graph model(pipeline.model());
  describe(model, {}, into);
}

}  // namespace troupe::detail
