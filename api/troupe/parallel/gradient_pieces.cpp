#include "troupe/parallel/gradient_pieces.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Below, a message of its own costs more than a copy.
constexpr std::int64_t min_elements_of_own = std::int64_t{1} << 14;
constexpr std::int64_t max_elements = std::int64_t{1} << 19;

tensor in_a_row(const tensor& gradient) { return gradient.reshape({gradient.num_elements()}); }

}  // namespace

gradient_pieces::gradient_pieces(std::vector<parameter*> parameters) : parameters_(std::move(parameters)) {
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    auto* each = parameters_[index];
    if (!each->requires_gradient) continue;
    trainable_.push_back(each);
    auto num_elements = each->extents.num_elements();
    if (num_elements < min_elements_of_own) {
      small_.push_back(each);
      num_packed_ += num_elements;
      continue;
    }
    auto num_pieces = (num_elements + max_elements - 1) / max_elements;
    for (std::int64_t i = 0; i < num_pieces; ++i) {
      auto first = num_elements * i / num_pieces;
      parts_.push_back({index, first, num_elements * (i + 1) / num_pieces - first});
    }
  }
  // At least one: what travels has elements.
  num_packed_ += std::max<std::int64_t>(static_cast<std::int64_t>(trainable_.size()), 1);
}

std::pair<int, int> gradient_pieces::pieces_of(const parameter& whose) const {
  auto is_of = [&](const optim::parameter_part& each) { return parameters_[each.index] == &whose; };
  auto first = std::ranges::find_if(parts_, is_of);
  auto end = std::find_if_not(first, parts_.end(), is_of);
  return {static_cast<int>(first - parts_.begin()), static_cast<int>(end - first)};
}

tensor gradient_pieces::elements_of(int piece) const {
  if (is_packed(piece)) return pack();
  const auto& part = part_of(piece);
  auto& gradient = parameters_[part.index]->gradient();
  auto elements = in_a_row(gradient).rows(part.first, part.count);
  if (!parameters_[part.index]->has_gradient) elements.fill_zero();
  return elements.to({});
}

/// The elements of small gradients, then for each parameter 1 if it has a gradient, else 0.
tensor gradient_pieces::pack() const {
  auto packed = tensor::zeros({num_packed_});
  std::int64_t next = 0;
  for (const auto* each : small_) {
    auto count = each->extents.num_elements();
    if (each->has_gradient && count > 0) packed.rows(next, count).copy_from(in_a_row(each->gradient()));
    next += count;
  }
  auto values = packed.values<float>();
  for (const auto* each : trainable_) values[static_cast<std::size_t>(next++)] = each->has_gradient ? 1 : 0;
  return packed;
}

void gradient_pieces::set_elements(int piece, const std::vector<tensor>& parts) const {
  auto target = is_packed(piece)
                    ? tensor::empty({num_packed_})
                    : optim::elements_of(parameters_[part_of(piece).index]->gradient(), part_of(piece));
  std::int64_t next = 0;
  for (const auto& part : parts) {
    target.rows(next, part.num_elements()).copy_from(part);
    next += part.num_elements();
  }
  if (is_packed(piece)) unpack(target);
}

void gradient_pieces::unpack(const tensor& packed) const {
  std::int64_t next = 0;
  for (auto* each : small_) {
    auto count = each->extents.num_elements();
    if (count > 0) in_a_row(each->gradient()).copy_from(packed.rows(next, count));
    next += count;
  }
  auto values = packed.values<float>();
  for (auto* each : trainable_) each->has_gradient = values[static_cast<std::size_t>(next++)] > 0;
}

}  // namespace troupe
