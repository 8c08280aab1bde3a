#include "troupe/fsdp/detail/unit_division.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe::detail {
namespace {

std::string prefix_of(const std::string& child, const std::string& prefix) {
  return child.empty() ? prefix : prefix + child + ".";
}

std::string name_of(const std::string& prefix) {
  return prefix.empty() ? "the model" : prefix.substr(0, prefix.size() - 1);
}

/// Collects modules that are not divided further, and joins those that follow one another.
class division_by_size {
 public:
  explicit division_by_size(std::int64_t num_elements) : num_elements_(num_elements) {}

  void add(nn::Module& module, const std::string& prefix) {
    bool has_own = false;
    int num_children = 0;
    module.each_parameter([&](const parameter&) { has_own = true; });
    module.each_child([&](const std::string&, nn::Module&) { ++num_children; });
    if (module.num_parameters() > num_elements_ && !has_own && num_children > 0)
      module.each_child(
          [&](const std::string& name, nn::Module& child) { add(child, prefix_of(name, prefix)); });
    else
      join(module, prefix);
  }
  std::vector<unit_of_model> take() { return std::move(units_); }

 private:
  void join(nn::Module& module, const std::string& prefix) {
    auto parameters = module.named_parameters(prefix);
    if (parameters.empty()) return;
    auto count = module.num_parameters();
    if (units_.empty() || in_newest_ + count > num_elements_) {
      units_.push_back({name_of(prefix), {}});
      first_of_newest_ = units_.back().name;
      in_newest_ = 0;
    } else {
      units_.back().name = first_of_newest_ + " to " + name_of(prefix);
    }
    in_newest_ += count;
    std::ranges::move(parameters, std::back_inserter(units_.back().parameters));
  }

  std::int64_t num_elements_;
  std::vector<unit_of_model> units_;
  std::string first_of_newest_;
  std::int64_t in_newest_ = 0;
};

/// The longest of `names` that is the parameter's module or has it within; empty if there is none.
std::string module_of(const std::string& parameter, const std::vector<std::string>& names) {
  std::string found;
  for (const auto& name : names)
    if (parameter.starts_with(name + ".") && name.size() > found.size()) found = name;
  return found;
}

std::vector<unit_of_model> divide_by_name(nn::Module& model, const std::vector<std::string>& names) {
  std::vector<unit_of_model> units;
  std::map<std::string, std::size_t> known;
  unit_of_model rest{"the rest", {}};
  for (auto& each : model.named_parameters()) {
    auto name = module_of(each.name, names);
    if (name.empty()) {
      rest.parameters.push_back(std::move(each));
      continue;
    }
    auto [unit, is_new] = known.emplace(name, units.size());
    if (is_new) units.push_back({name, {}});
    units[unit->second].parameters.push_back(std::move(each));
  }
  for (const auto& name : names) {
    if (std::ranges::count(names, name) > 1)
      throw_invalid("FullyShardedDataParallel", "units of different names", "'" + name + "' twice");
    if (!known.contains(name))
      throw_invalid("FullyShardedDataParallel",
                    "units that name modules with parameters, such as " +
                        model.named_parameters().front().name.substr(
                            0, model.named_parameters().front().name.rfind('.')),
                    "'" + name + "'");
  }
  if (!rest.parameters.empty()) units.insert(units.begin(), std::move(rest));
  return units;
}

}  // namespace

std::vector<unit_of_model> divide_into_units(nn::Module& model, const std::vector<std::string>& names,
                                             std::int64_t num_elements) {
  if (model.named_parameters().empty()) return {};
  if (!names.empty()) return divide_by_name(model, names);
  division_by_size divided(num_elements);
  divided.add(model, "");
  return divided.take();
}

}  // namespace troupe::detail
