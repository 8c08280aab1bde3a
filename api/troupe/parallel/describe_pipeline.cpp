#include "troupe/parallel/describe_pipeline.hpp"

#include "troupe/parallel/tried_functions.hpp"

namespace troupe {
namespace {

std::string text_of(const parameter& each) {
  auto text = to_string(each.extents) + ", begins " + tried(each.begin, each.extents);
  if (!each.requires_gradient) text += ", frozen";
  if (!each.same_as.empty()) text += ", the same as " + each.same_as;
  return text;
}

/// `module` and what is in it; `path`: without a dot at its end.
void describe(nn::Module& module, const std::string& path, job_description& into) {
  auto inner = path.empty() ? path : path + ".";
  into.add("module " + path, type_name(typeid(module)));
  module.each_parameter([&](parameter& each) { into.add("parameter " + inner + each.name, text_of(each)); });
  module.each_buffer([&](nn::buffer& each) {
    into.add("buffer " + inner + each.name,
             to_string(each.extents) + ", begins " + std::to_string(each.begins_with));
  });
  module.each_child([&](const std::string& name, nn::Module& child) {
    describe(child, name.empty() ? path : inner + name, into);
  });
}

void describe(const numerics& how, job_description& into) {
  into.add("precision", std::string(to_string(how.precision)));
  into.add("clip_grad_norm", std::to_string(how.clip_grad_norm));
  const auto& scale = how.loss_scale;
  into.add("loss_scale", std::to_string(scale.initial_scale) + ", times " +
                             std::to_string(scale.growth_factor) + " every " +
                             std::to_string(scale.growth_interval) + ", " +
                             std::to_string(scale.backoff_factor) + " on overflow");
}

}  // namespace

void describe_pipeline(const Pipeline& pipeline, job_description& into) {
  describe(pipeline.how(), into);
  into.add("loss", type_name(pipeline.loss().target_type()) + ", tried: " + tried(pipeline.loss()));
  into.add("optimizer",
           type_name(pipeline.optimizer().target_type()) + ", tried: " + tried(pipeline.optimizer()));
  into.add("parameters", std::to_string(pipeline.model().num_parameters()));
  nn::Sequential model(pipeline.model());
  describe(model, {}, into);
}

}  // namespace troupe
