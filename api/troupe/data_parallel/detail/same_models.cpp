#include "troupe/data_parallel/detail/same_models.hpp"

#include <sstream>
#include <stdexcept>
#include <utility>

#include "troupe/data_parallel/detail/gathered_parts.hpp"

namespace troupe::detail {
namespace {

/// A line for each module. `path` has no trailing dot; that of the whole model is empty.
void describe_modes(nn::Module& module, const std::string& path, std::string& into) {
  into += '\n' + (path.empty() ? "the model" : "the module " + path) +
          (module.is_training() ? " in training mode" : " in evaluation mode");
  module.each_child([&](const std::string& name, nn::Module& child) {
    if (name.empty() || path.empty())
      describe_modes(child, path + name, into);
    else
      describe_modes(child, path + "." + name, into);
  });
}

/// Without devices: each member has a GPU of its own.
std::string described(nn::Module& model, const std::string& options) {
  std::string text = options;
  for (const auto& each : model.named_parameters()) {
    const auto& value = each.target->value();
    text += '\n' + each.name + ' ' + std::string(to_string(value.defined() ? value.dtype() : dtype::f32)) +
            to_string(each.target->extents) + (each.target->requires_gradient ? "" : ", frozen") +
            (value.defined() ? "" : ", only described");
  }
  text += "\nno more parameters";
  describe_modes(model, "", text);
  return text;
}

/// The first line in which the texts differ; "no more modules" for a missing line.
std::pair<std::string, std::string> first_difference(const std::string& expected, const std::string& got) {
  std::istringstream left(expected), right(got);
  while (true) {
    std::string a, b;
    bool has_left = static_cast<bool>(std::getline(left, a)),
         has_right = static_cast<bool>(std::getline(right, b));
    if (a != b || has_left != has_right || !has_left)
      return {has_left ? a : "no more modules", has_right ? b : "no more modules"};
  }
}

}  // namespace

void require_same_models(const char* function, nn::Module& model, const std::string& options,
                         communicator& group) {
  auto texts = gather_texts(described(model, options), group);
  const auto& ranks = group.group().ranks;
  for (std::size_t i = 1; i < texts.size(); ++i) {
    if (texts[i] == texts[0]) continue;
    auto [expected, got] = first_difference(texts[0], texts[i]);
    throw std::invalid_argument(
        "[" + std::string(function) + "] expected the same model and options on all ranks: rank " +
        to_string(ranks[0]) + " has " + expected + ", rank " + to_string(ranks[i]) + " has " + got);
  }
}

}  // namespace troupe::detail
