#include "troupe/fsdp/detail/state/whole_state.hpp"

#include <map>
#include <stdexcept>
#include <utility>

#include "troupe/data_parallel/detail/gathered_parts.hpp"
#include "troupe/fsdp/detail/state/state_part.hpp"

namespace troupe::detail {

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

void load_whole_state(const sharded_model& model, optim::optimizer_state& optimizer,
                      const std::vector<named_tensor>& saved) {
  std::map<std::string, const tensor*> by_name;
  for (const auto& each : saved) by_name[each.name] = &each.value;
  std::vector<named_tensor> own;
  for (const auto& each : held_state(model, optimizer)) {
    auto found = by_name.find(each.name);
    if (found == by_name.end())
      throw std::runtime_error(
          "[load_optimizer_state] expected a whole state of this model, got one without " + each.name);
    const auto& whole = *found->second;
    auto part = whole;
    if (each.whole && whole.shape() == *each.whole)
      part =
          optim::elements_of(whole, {0, each.first, each.value.num_elements()}).reshape(each.value.shape());
    own.push_back({each.name, part});
  }
  optimizer.load_state(own);
}

}  // namespace troupe::detail
