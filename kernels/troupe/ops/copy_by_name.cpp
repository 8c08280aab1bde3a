#include "troupe/ops/copy_by_name.hpp"

#include <set>
#include <stdexcept>
#include <unordered_map>

#include "troupe/ops/convert.hpp"

namespace troupe {
namespace {

using by_name = std::unordered_map<std::string, tensor>;

/// Maximum number of names per kind of problem in a message; a model has thousands of tensors.
constexpr std::size_t max_named = 8;

std::string listed(const std::string& side, const std::vector<std::string>& all) {
  if (all.empty()) return {};
  auto text = "; " + side + " ";
  for (std::size_t i = 0; i < std::min(all.size(), max_named); ++i) text += (i ? ", " : "") + all[i];
  if (all.size() > max_named) text += " and " + std::to_string(all.size() - max_named) + " more";
  return text;
}

bool fits(const tensor& target, const tensor& saved) {
  bool widens = target.dtype() == dtype::f32 && is_floating(saved.dtype());
  return saved.shape() == target.shape() && (saved.dtype() == target.dtype() || widens);
}

unmatched_names compare(const std::vector<named_tensor>& to, const std::vector<named_tensor>& saved,
                        const by_name& targets, bool strict) {
  std::vector<std::string> unfit, twice;
  unmatched_names unmatched;
  std::set<std::string> found;
  for (const auto& [name, value] : saved) {
    auto target = targets.find(name);
    if (!found.insert(name).second)
      twice.push_back(name);
    else if (target == targets.end())
      unmatched.unexpected.push_back(name);
    else if (!fits(target->second, value))
      unfit.push_back(name + " is " + describe(value) + ", expected " + describe(target->second));
  }
  for (const auto& [name, value] : to)
    if (!found.contains(name)) unmatched.missing.push_back(name);
  auto problems = listed("there twice:", twice) + listed("of another kind:", unfit);
  if (strict)
    problems += listed("missing tensor", unmatched.missing) + listed("unknown tensor", unmatched.unexpected);
  if (!problems.empty()) throw std::runtime_error("cannot load the state: " + problems.substr(2));
  return unmatched;
}

}  // namespace

unmatched_names copy_by_name(const std::vector<named_tensor>& to, const std::vector<named_tensor>& saved,
                             copy_by_name_options options) {
  by_name targets;
  for (const auto& [name, value] : to) targets.emplace(name, value);
  auto unmatched = compare(to, saved, targets, options.strict);
  for (const auto& [name, value] : saved) {
    auto target = targets.find(name);
    if (target != targets.end()) target->second.copy_from(cast(value, target->second.dtype()));
  }
  return unmatched;
}

}  // namespace troupe
