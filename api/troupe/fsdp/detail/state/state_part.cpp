#include "troupe/fsdp/detail/state/state_part.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "troupe/optim/parameter_part.hpp"

namespace troupe::detail {
namespace {

constexpr std::int64_t version = 1;
constexpr std::size_t head_bytes = 2 * sizeof(std::int64_t);  // version, bytes of the list
constexpr std::size_t alignment = 64;                         // of each tensor in the bytes

std::size_t aligned(std::size_t offset) { return (offset + alignment - 1) / alignment * alignment; }

/// A piece that a tensor of an optimizer's state belongs to.
struct owner_of_state {
  const flat_parameters* flat = nullptr;
  std::size_t piece = 0;
};

/// By the longest parameter's name before a '/'.
std::optional<owner_of_state> owner_of(const std::string& name, const std::vector<flat_parameters*>& flats) {
  std::optional<owner_of_state> found;
  std::size_t longest = 0;
  for (const auto* flat : flats)
    for (std::size_t piece = 0; piece < flat->pieces().size(); ++piece) {
      const auto& parameter = flat->pieces()[piece].name;
      if (!name.starts_with(parameter + "/") || parameter.size() < longest) continue;
      longest = parameter.size();
      found = {flat, piece};
    }
  return found;
}

void set_place(held_tensor& held, const flat_parameters& flat, std::size_t piece) {
  const auto& place = flat.place_of(piece);
  held.whole = flat.parameters()[place.index].target->extents;
  held.first = place.first;
}

nlohmann::json described(const held_tensor& held) {
  nlohmann::json one{{"kind", static_cast<int>(held.kind)},
                     {"name", held.name},
                     {"type", static_cast<int>(held.value.dtype())},
                     {"shape", held.value.shape().extents()}};
  if (!held.whole) return one;
  one["whole"] = held.whole->extents();
  one["first"] = held.first;
  return one;
}

[[noreturn]] void refuse(const std::string& found) {
  throw std::runtime_error("expected a part of a sharded state of version " + std::to_string(version) +
                           ", got " + found);
}

}  // namespace

std::vector<held_tensor> held_weights(const sharded_model& model) {
  std::vector<held_tensor> result;
  for (const auto* flat : model.flats())
    for (std::size_t piece = 0; piece < flat->pieces().size(); ++piece) {
      const auto& [name, target] = flat->pieces()[piece];
      held_tensor held{.kind = held_tensor::kind_of::weight, .name = name, .value = target->value()};
      set_place(held, *flat, piece);
      result.push_back(std::move(held));
    }
  return result;
}

std::vector<held_tensor> held_state(const sharded_model& model, const optim::optimizer_state& optimizer) {
  std::vector<held_tensor> result;
  for (auto& [name, value] : optimizer.state()) {
    auto owner = owner_of(name, model.flats());
    held_tensor held{.kind = held_tensor::kind_of::optimizer, .name = name, .value = value};
    if (owner && value.shape() == owner->flat->pieces()[owner->piece].target->extents)
      set_place(held, *owner->flat, owner->piece);
    result.push_back(std::move(held));
  }
  return result;
}

std::vector<held_tensor> held_buffers(nn::Module& model) {
  std::vector<held_tensor> result;
  for (const auto& each : model.named_buffers())
    result.push_back({.kind = held_tensor::kind_of::buffer, .name = each.name, .value = each.target->value});
  return result;
}

tensor pack(const std::vector<held_tensor>& held) {
  auto list = nlohmann::json::array();
  for (const auto& each : held) list.push_back(described(each));
  auto text = list.dump();
  auto size = head_bytes + text.size();
  for (const auto& each : held) size = aligned(size) + each.value.size_bytes();
  auto result = tensor::empty({static_cast<std::int64_t>(size)}, dtype::u8);
  std::int64_t head[] = {version, static_cast<std::int64_t>(text.size())};
  auto* to = result.bytes().data();
  std::memcpy(to, head, head_bytes);
  std::memcpy(to + head_bytes, text.data(), text.size());
  auto at = head_bytes + text.size();
  for (const auto& each : held) {
    auto value = each.value.to(device{});
    at = aligned(at);
    std::memcpy(to + at, value.bytes().data(), value.size_bytes());
    at += value.size_bytes();
  }
  return result;
}

std::vector<held_tensor> unpack(const tensor& bytes) {
  auto owner = std::make_shared<tensor>(bytes);
  auto all = owner->bytes();
  std::int64_t head[2];
  if (all.size() < head_bytes) refuse(std::to_string(all.size()) + " bytes");
  std::memcpy(head, all.data(), head_bytes);
  if (head[0] != version) refuse("version " + std::to_string(head[0]));
  if (head[1] < 0 || std::cmp_greater(head[1], all.size() - head_bytes)) refuse("a list that is cut off");
  std::string_view text(reinterpret_cast<const char*>(all.data()) + head_bytes,
                        static_cast<std::size_t>(head[1]));
  std::vector<held_tensor> result;
  auto at = head_bytes + text.size();
  for (const auto& each : nlohmann::json::parse(text)) {
    held_tensor held{.kind = held_tensor::kind_of{each["kind"].get<std::uint8_t>()}, .name = each["name"]};
    shape extents(each["shape"].get<std::vector<std::int64_t>>());
    auto type = dtype_from_number(each["type"].get<std::uint8_t>());
    auto size = static_cast<std::size_t>(extents.num_elements()) * size_bytes(type);
    at = aligned(at);
    if (at > all.size() || size > all.size() - at) refuse(held.name + " cut off");
    held.value = tensor::wrap(owner, all.data() + at, std::move(extents), type);
    at += size;
    if (each.contains("whole")) {
      held.whole = shape(each["whole"].get<std::vector<std::int64_t>>());
      held.first = each["first"];
    }
    result.push_back(std::move(held));
  }
  return result;
}

std::int64_t copy_elements(const held_tensor& from, held_tensor& to) {
  if (from.kind != to.kind || from.name != to.name || from.value.dtype() != to.value.dtype() ||
      from.whole.has_value() != to.whole.has_value())
    return 0;
  if (!from.whole) {
    if (from.value.shape() != to.value.shape()) return 0;
    to.value.copy_from(from.value);
    return to.value.num_elements();
  }
  if (*from.whole != *to.whole) return 0;
  auto first = std::max(from.first, to.first);
  auto end = std::min(from.first + from.value.num_elements(), to.first + to.value.num_elements());
  if (first >= end) return 0;
  optim::elements_of(to.value, {0, first - to.first, end - first})
      .copy_from(optim::elements_of(from.value, {0, first - from.first, end - first}));
  return end - first;
}

}  // namespace troupe::detail
