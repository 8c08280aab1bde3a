#include "troupe/nn/module.hpp"

#include <map>
#include <stdexcept>

#include "troupe/error/errors.hpp"
#include "troupe/nn/detail/batch_counts.hpp"
#include "troupe/nn/detail/layer_error.hpp"
#include "troupe/tensor/memory.hpp"

namespace troupe::nn {
namespace {

/// The prefix of a child's parameter names.
std::string prefix_of(const std::string& child, const std::string& prefix) {
  return child.empty() ? prefix : prefix + child + ".";
}

/// Throws unless names and targets are unique.
template <class Named>
void require_distinct(const std::vector<Named>& all) {
  std::map<std::string, const void*> by_name;
  std::map<const void*, std::string> by_target;
  for (const auto& [name, target] : all) {
    if (!by_name.emplace(name, target).second)
      throw_invalid("Module", "one parameter or buffer of each name",
                    name + " twice: give the children in each_child names of their own");
    auto [known, is_new] = by_target.emplace(target, name);
    if (!is_new)
      throw_invalid("Module", "each module with parameters or buffers in one place of the model",
                    "the same as " + known->second + " and " + name +
                        ": make two modules, or tie a weight with TiedLinear");
  }
}

/// All modules within `module`, and all parameters and buffers, by address.
std::map<const void*, std::string> parts_of(Module& module, const std::string& prefix) {
  std::map<const void*, std::string> parts;
  module.each_parameter([&](parameter& each) { parts.emplace(&each, prefix + each.name); });
  module.each_buffer([&](buffer& each) { parts.emplace(&each, prefix + each.name); });
  module.each_child([&](const std::string& name, Module& child) {
    parts.emplace(&child, prefix + name);
    parts.merge(parts_of(child, prefix_of(name, prefix)));
  });
  return parts;
}

}  // namespace

buffer::buffer(const buffer& other)
    : name(other.name), extents(other.extents), initial_value(other.initial_value) {
  memory_scope counted(memory_category::parameters);
  value = other.value.clone();
}

variable Module::operator()(const variable& input) {
  try {
    return forward(input);
  } catch (...) {
    detail::rethrow_in_layer(path_);
  }
}

void Module::materialize(std::uint64_t seed, const std::string& prefix) {
  materialize(seed, prefix, [](const named_parameter&) {});
}

void Module::materialize(std::uint64_t seed, const std::string& prefix,
                         const std::function<void(const named_parameter&)>& on_parameter) {
  named_parameters(prefix);
  named_buffers(prefix);
  fill(seed, prefix, on_parameter);
}

void Module::fill(std::uint64_t seed, const std::string& prefix,
                  const std::function<void(const named_parameter&)>& on_parameter) {
  path_ = prefix.substr(0, prefix.find_last_not_of('.') + 1);
  on_materialize(seed, prefix);
  each_parameter([&](parameter& each) {
    each.materialize(seed, prefix + each.name);
    on_parameter({prefix + each.name, &each});
  });
  each_buffer([](buffer& each) {
    memory_scope counted(memory_category::parameters);
    each.value = tensor::full(each.extents, each.initial_value);
  });
  each_child([&](const std::string& name, Module& child) {
    child.fill(seed, prefix_of(name, prefix), on_parameter);
  });
}

void Module::to(device target) {
  each_parameter([target](parameter& each) { each.move_to(target); });
  each_buffer([target](buffer& each) {
    memory_scope counted(memory_category::parameters);
    each.value = each.value.to(target);
  });
  each_child([target](const std::string&, Module& child) { child.to(target); });
}

std::int64_t Module::num_parameters() const {
  // The visitors are non-const, but these do not change the module.
  auto& self = const_cast<Module&>(*this);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  std::int64_t sum = 0;
  self.each_parameter([&](const parameter& each) { sum += each.extents.num_elements(); });
  self.each_child([&](const std::string&, const Module& child) { sum += child.num_parameters(); });
  return sum;
}

std::int64_t Module::num_trainable_parameters() const {
  auto& self = const_cast<Module&>(*this);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  std::int64_t sum = 0;
  self.each_parameter([&](const parameter& each) {
    if (each.requires_gradient) sum += each.extents.num_elements();
  });
  self.each_child([&](const std::string&, const Module& child) { sum += child.num_trainable_parameters(); });
  return sum;
}

double Module::cost() const {
  auto& self = const_cast<Module&>(*this);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  double sum = 0;
  self.each_parameter(
      [&](const parameter& each) { sum += static_cast<double>(each.extents.num_elements()); });
  self.each_child([&](const std::string&, const Module& child) { sum += child.cost(); });
  return sum;
}

void Module::collect(const std::string& prefix, std::vector<named_parameter>& into) {
  each_parameter([&](parameter& each) { into.push_back({prefix + each.name, &each}); });
  each_child([&](const std::string& name, Module& child) { child.collect(prefix_of(name, prefix), into); });
}

void Module::collect(const std::string& prefix, std::vector<named_buffer>& into) {
  each_buffer([&](buffer& each) { into.push_back({prefix + each.name, &each}); });
  each_child([&](const std::string& name, Module& child) { child.collect(prefix_of(name, prefix), into); });
}

std::vector<named_parameter> Module::named_parameters(const std::string& prefix) {
  std::vector<named_parameter> result;
  collect(prefix, result);
  require_distinct(result);
  return result;
}

std::vector<named_buffer> Module::named_buffers(const std::string& prefix) {
  std::vector<named_buffer> result;
  collect(prefix, result);
  require_distinct(result);
  return result;
}

std::vector<parameter*> Module::parameters() {
  std::vector<parameter*> result;
  for (const auto& each : named_parameters()) result.push_back(each.target);
  return result;
}

std::vector<named_tensor> Module::state_dict(const std::string& prefix) {
  std::vector<named_tensor> result;
  for (const auto& each : named_parameters(prefix)) {
    each.target->wait_ready();
    result.push_back({each.name, each.target->value()});
  }
  for (const auto& each : named_buffers(prefix)) result.push_back({each.name, each.target->value});
  return result;
}

unmatched_names Module::load_state_dict(const std::vector<named_tensor>& saved,
                                        copy_by_name_options options) {
  auto unmatched = copy_by_name(state_dict(), detail::without_batch_counts(saved), options);
  for (auto* each : parameters()) each->mark_changed();
  return unmatched;
}

void Module::require_own_parts(const Module& original) const {
  // This visitor does not change the module.
  auto of_original =
      parts_of(const_cast<Module&>(original), {});  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  for (const auto& [part, name] :
       parts_of(const_cast<Module&>(*this), {}))  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    if (of_original.contains(part))
      throw std::logic_error(
          "[Module::clone] expected a copy with parts of its own, got one that shares " + name +
          " with its original: a class that holds a child by pointer clones it in its copy "
          "constructor, as nn::Checkpoint does");
}

void Module::copy_modes(const Module& original) {
  training_ = original.training_;
  std::vector<const Module*> children;
  // This visitor does not change the module.
  const_cast<Module&>(original)  // NOLINT(cppcoreguidelines-pro-type-const-cast)
      .each_child([&](const std::string&, const Module& child) { children.push_back(&child); });
  std::size_t index = 0;
  each_child([&](const std::string&, Module& child) {
    if (index < children.size()) child.copy_modes(*children[index++]);
  });
}

void Module::zero_grad() {
  for (auto* each : parameters()) each->has_gradient = false;
}

void Module::requires_gradient(bool required) {
  for (auto* each : parameters()) each->requires_gradient = required;
}

void Module::train(bool training) {
  training_ = training;
  each_child([training](const std::string&, Module& child) { child.train(training); });
}

}  // namespace troupe::nn
