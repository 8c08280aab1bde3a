#include "troupe/fsdp/detail/state/whole_state.hpp"

#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "troupe/data_parallel/detail/gathered_parts.hpp"
#include "troupe/fsdp/detail/state/state_part.hpp"

namespace troupe::detail {
namespace {

/// Of the tensors that all members hold together.
std::set<std::string> names_of_all(const std::vector<held_tensor>& held, communicator& group) {
  std::string own;
  for (const auto& each : held) own += each.name + '\n';
  std::set<std::string> names;
  for (const auto& text : gather_texts(own, group)) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) names.insert(line);
  }
  return names;
}

void require_same_names(const std::set<std::string>& expected, const std::vector<named_tensor>& saved) {
  std::set<std::string> got;
  for (const auto& each : saved) got.insert(each.name);
  auto refuse = [](const std::string& problem) {
    throw std::runtime_error(
        "[load_optimizer_state] expected a whole state of this model and optimizer, got one " + problem);
  };
  for (const auto& name : expected)
    if (!got.contains(name)) refuse("without " + name);
  for (const auto& name : got)
    if (!expected.contains(name)) refuse("with " + name + ", which they have not");
}

}  // namespace

std::vector<named_tensor> gather_state(sharded_model& model, const optim::optimizer_state& optimizer) {
  std::map<std::string, held_tensor> whole;
  for (const auto& bytes : gather_parts(pack(held_state(model, optimizer)), model.group()))
    for (const auto& part : unpack(bytes)) {
      auto [made, is_new] = whole.try_emplace(part.name, part);
      if (is_new && part.whole)
        made->second = {.kind = part.kind,
                        .name = part.name,
                        .whole = part.whole,
                        .value = tensor::zeros(*part.whole, part.value.dtype())};
      copy_elements(part, made->second);
    }
  std::vector<named_tensor> result;
  for (auto& [name, held] : whole) result.push_back({name, std::move(held.value)});
  return result;
}

void load_whole_state(sharded_model& model, optim::optimizer_state& optimizer,
                      const std::vector<named_tensor>& saved) {
  auto held = held_state(model, optimizer);
  require_same_names(names_of_all(held, model.group()), saved);
  std::map<std::string, const tensor*> by_name;
  for (const auto& each : saved) by_name[each.name] = &each.value;
  std::vector<named_tensor> own;
  std::string problems;
  for (const auto& each : held) {
    const auto& whole = *by_name.at(each.name);
    auto expected = each.whole.value_or(each.value.shape());
    if (whole.shape() != expected || whole.dtype() != each.value.dtype()) {
      problems += (problems.empty() ? "" : "; ") + each.name + " is " + describe(whole) + ", expected " +
                  std::string(to_string(each.value.dtype())) + to_string(expected);
      continue;
    }
    own.push_back({each.name, each.whole
                                  ? optim::elements_of(whole, {0, each.first, each.value.num_elements()})
                                        .reshape(each.value.shape())
                                  : whole});
  }
  for (const auto& each : gather_texts(problems, model.group()))
    if (!each.empty()) throw std::runtime_error("[load_optimizer_state] " + each);
  optimizer.load_state(own);
}

}  // namespace troupe::detail
