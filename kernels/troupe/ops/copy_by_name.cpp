#include "troupe/ops/copy_by_name.hpp"

#include <set>
#include <stdexcept>
#include <unordered_map>

#include "troupe/ops/convert.hpp"

namespace troupe {
namespace {

/// Maximum number of names per kind of problem in a message; a model has thousands of tensors.
constexpr std::size_t max_named = 8;

std::string listed(const std::string& side, const std::vector<std::string>& all) {
  if (all.empty()) return {};
  auto text = "; " + side + " ";
  for (std::size_t i = 0; i < std::min(all.size(), max_named); ++i) text += (i ? ", " : "") + all[i];
  if (all.size() > max_named) text += " and " + std::to_string(all.size() - max_named) + " more";
  return text;
}

bool fits(const named_form& target, const tensor& saved) {
  bool widens = target.type == dtype::f32 && is_floating(saved.dtype());
  return saved.shape() == target.extents && (saved.dtype() == target.type || widens);
}

}  // namespace

unmatched_names compare_by_name(const std::vector<named_form>& to, const std::vector<named_tensor>& saved,
                                copy_by_name_options options) {
  std::unordered_map<std::string, const named_form*> targets;
  for (const auto& each : to) targets.emplace(each.name, &each);
  std::vector<std::string> unfit, twice;
  unmatched_names unmatched;
  std::set<std::string> found;
  for (const auto& [name, value] : saved) {
    auto target = targets.find(name);
    if (!found.insert(name).second)
      twice.push_back(name);
    else if (target == targets.end())
      unmatched.unexpected.push_back(name);
    else if (!fits(*target->second, value))
      unfit.push_back(name + " is " + describe(value) + ", expected " +
                      std::string(to_string(target->second->type)) + to_string(target->second->extents));
  }
  for (const auto& each : to)
    if (!found.contains(each.name)) unmatched.missing.push_back(each.name);
  auto problems = listed("there twice:", twice) + listed("of another kind:", unfit);
  if (options.strict)
    problems += listed("missing tensor", unmatched.missing) + listed("unknown tensor", unmatched.unexpected);
  if (!problems.empty()) throw std::runtime_error("cannot load the state: " + problems.substr(2));
  return unmatched;
}

unmatched_names copy_by_name(const std::vector<named_tensor>& to, const std::vector<named_tensor>& saved,
                             copy_by_name_options options) {
  std::unordered_map<std::string, tensor> targets;
  std::vector<named_form> forms;
  for (const auto& [name, value] : to) {
    targets.emplace(name, value);
    forms.push_back({name, value.shape(), value.dtype()});
  }
  auto unmatched = compare_by_name(forms, saved, options);
  for (const auto& [name, value] : saved) {
    auto target = targets.find(name);
    if (target != targets.end()) target->second.copy_from(cast(value, target->second.dtype()));
  }
  return unmatched;
}

}  // namespace troupe
