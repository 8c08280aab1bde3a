#include "troupe/nn/module.hpp"

#include "troupe/tensor/memory.hpp"

namespace troupe::nn {
namespace {

/// What the names of a child's parameters begin with.
std::string prefix_of(const std::string& child, const std::string& prefix) {
  return child.empty() ? prefix : prefix + child + ".";
}

}  // namespace

void Module::materialize(std::uint64_t seed, const std::string& prefix) {
  on_materialize(seed, prefix);
  each_parameter([&](parameter& each) { each.materialize(seed, prefix + each.name); });
  each_buffer([](buffer& each) {
    memory_scope counted(memory_category::parameters);
    each.value = tensor::full(each.extents, each.begins_with);
  });
  each_child(
      [&](const std::string& name, Module& child) { child.materialize(seed, prefix_of(name, prefix)); });
}

void Module::to(device where) {
  each_parameter([where](parameter& each) { each.move_to(where); });
  each_buffer([where](buffer& each) {
    memory_scope counted(memory_category::parameters);
    each.value = each.value.to(where);
  });
  each_child([where](const std::string&, Module& child) { child.to(where); });
}

std::int64_t Module::num_parameters() const {
  // Visiting changes nothing here; there is one kind of visit, which can.
  auto& self = const_cast<Module&>(*this);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  std::int64_t sum = 0;
  self.each_parameter([&](const parameter& each) { sum += each.extents.num_elements(); });
  self.each_child([&](const std::string&, const Module& child) { sum += child.num_parameters(); });
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

std::vector<named_parameter> Module::named_parameters(const std::string& prefix) {
  std::vector<named_parameter> result;
  each_parameter([&](parameter& each) { result.push_back({prefix + each.name, &each}); });
  each_child([&](const std::string& name, Module& child) {
    for (auto& each : child.named_parameters(prefix_of(name, prefix))) result.push_back(std::move(each));
  });
  return result;
}

std::vector<named_buffer> Module::named_buffers(const std::string& prefix) {
  std::vector<named_buffer> result;
  each_buffer([&](buffer& each) { result.push_back({prefix + each.name, &each}); });
  each_child([&](const std::string& name, Module& child) {
    for (auto& each : child.named_buffers(prefix_of(name, prefix))) result.push_back(std::move(each));
  });
  return result;
}

std::vector<parameter*> Module::parameters() {
  std::vector<parameter*> result;
  for (const auto& each : named_parameters()) result.push_back(each.target);
  return result;
}

std::vector<named_tensor> Module::state_dict(const std::string& prefix) {
  std::vector<named_tensor> result;
  for (const auto& each : named_parameters(prefix)) result.push_back({each.name, each.target->value});
  for (const auto& each : named_buffers(prefix)) result.push_back({each.name, each.target->value});
  return result;
}

unmatched_names Module::load_state_dict(const std::vector<named_tensor>& saved,
                                        copy_by_name_options options) {
  auto unmatched = copy_by_name(state_dict(), saved, options);
  for (auto* each : parameters()) each->changed();
  return unmatched;
}

void Module::own_tensors() {
  auto own = [](tensor& each, memory_category category) {
    memory_scope counted(category);
    if (each.defined()) each = each.clone();
  };
  each_parameter([&](parameter& each) {
    own(each.value, memory_category::parameters);
    own(each.gradient, memory_category::gradients);
    each.changed();
  });
  each_buffer([&](buffer& each) { own(each.value, memory_category::parameters); });
  each_child([](const std::string&, Module& child) { child.own_tensors(); });
}

void Module::train(bool training) {
  training_ = training;
  each_child([training](const std::string&, Module& child) { child.train(training); });
}

}  // namespace troupe::nn
