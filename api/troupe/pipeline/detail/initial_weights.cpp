#include "troupe/pipeline/detail/initial_weights.hpp"

#include <map>

#include "troupe/error/errors.hpp"

namespace troupe::detail {
namespace {

[[noreturn]] void refuse(const std::string& problem) {
  throw bad_input("the model cannot begin with these weights: " + problem);
}

std::map<std::string, shape> shapes_of(const nn::Module& model) {
  auto described = model.clone();
  std::map<std::string, shape> shapes;
  for (const auto& each : described->named_parameters()) shapes.emplace(each.name, each.target->extents);
  for (const auto& each : described->named_buffers()) shapes.emplace(each.name, each.target->extents);
  return shapes;
}

}  // namespace

void check_initial_weights(const nn::Module& model, const std::vector<named_tensor>& weights) {
  auto shapes = shapes_of(model);
  for (const auto& [name, value] : weights) {
    auto found = shapes.find(name);
    if (found == shapes.end()) refuse(name + " is not in the model, or there twice");
    if (value.dtype() != dtype::f32 || value.shape() != found->second)
      refuse(name + " is " + describe(value) + ", expected f32" + to_string(found->second));
    shapes.erase(found);
  }
  if (!shapes.empty()) refuse(shapes.begin()->first + " is missing");
}

std::optional<std::vector<named_tensor>> weights_if_materialized(nn::Module& model) {
  std::string with, without;
  for (const auto& each : model.state_dict()) (each.value.defined() ? with : without) = each.name;
  if (with.empty()) return {};
  if (!without.empty())
    refuse(with + " is materialized, and " + without +
           " is not. Materialize the whole model, or nothing of it, which begins with initial values");
  auto weights = model.state_dict();
  for (auto& each : weights) each.value = each.value.to({}).clone();
  return weights;
}

}  // namespace troupe::detail
