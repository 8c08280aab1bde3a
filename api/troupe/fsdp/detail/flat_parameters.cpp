#include "troupe/fsdp/detail/flat_parameters.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "troupe/optim/parameter_part.hpp"
#include "troupe/tensor/memory.hpp"

namespace troupe::detail {
namespace {

constexpr std::int64_t elements_of_a_cache_line = 16;

std::int64_t in_whole_lines(std::int64_t num_elements) {
  return (num_elements + elements_of_a_cache_line - 1) / elements_of_a_cache_line * elements_of_a_cache_line;
}

}  // namespace

flat_parameters::flat_parameters(std::vector<named_parameter> parameters)
    : parameters_(std::move(parameters)) {
  for (const auto& each : parameters_) {
    offsets_.push_back(num_elements_);
    sizes_.push_back(in_whole_lines(each.target->extents.num_elements()));
    num_elements_ += sizes_.back();
  }
}

tensor flat_parameters::view_of(const tensor& flat, std::size_t index) const {
  const auto& extents = parameters_[index].target->extents;
  return flat.rows(offsets_[index], extents.num_elements()).reshape(extents);
}

void flat_parameters::own_part_of(tensor values, std::vector<std::int64_t> parts, int own,
                                  bool keeps_values) {
  parts_ = std::move(parts);
  first_ = std::accumulate(parts_.begin(), parts_.begin() + own, std::int64_t{0});
  auto count = parts_[static_cast<std::size_t>(own)];
  if (keeps_values) {
    own_ = values.rows(first_, count);
    attach(values);
  } else {
    memory_scope counted(memory_category::parameters);
    auto memory = tensor::empty({std::max(count, std::int64_t{1})}, dtype::f32, values.device());
    memory.rows(0, count).copy_from(values.rows(first_, count));
    own_ = memory.rows(0, count);
  }
  make_pieces();
}

void flat_parameters::make_pieces() {
  pieces_.clear();
  places_.clear();
  made_.clear();
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    const auto& [name, whole] = parameters_[index];
    auto count = whole->extents.num_elements();
    auto first = std::max(first_ - offsets_[index], std::int64_t{0});
    auto end = std::min(first_ + num_own() - offsets_[index], count);
    if (first >= end) continue;
    auto value = own_.rows(offsets_[index] + first - first_, end - first);
    if (end - first == count) value = value.reshape(whole->extents);
    auto& piece = made_.emplace_back(name, value.shape(), nullptr);
    piece.attach(value);
    piece.requires_gradient = whole->requires_gradient;
    pieces_.push_back({name, &piece});
    places_.push_back({index, first, end - first});
  }
}

void flat_parameters::attach_gradients(const tensor& own) {
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const auto& place = places_[i];
    auto& piece = *pieces_[i].target;
    piece.attach_gradient(
        own.rows(offsets_[place.index] + place.first - first_, place.count).reshape(piece.extents));
  }
}

tensor flat_parameters::piece_of(const tensor& whole, std::size_t piece) const {
  const auto& place = places_[piece];
  return optim::elements_of(whole, {0, place.first, place.count}).reshape(pieces_[piece].target->extents);
}

void flat_parameters::attach(const tensor& flat) {
  attached_ = flat;
  versions_.clear();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].target->attach(view_of(flat, i));
    versions_.push_back(parameters_[i].target->version());
  }
}

void flat_parameters::take_writes() {
  if (!is_attached()) return;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    auto index = places_[i].index;
    auto& whole = *parameters_[index].target;
    if (whole.version() != versions_[index]) pieces_[i].target->value().copy_from(piece_of(whole.value(), i));
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) versions_[i] = parameters_[i].target->version();
}

void flat_parameters::detach() {
  if (!is_attached()) return;
  take_writes();
  for (const auto& each : parameters_) each.target->detach();
  attached_ = {};
}

}  // namespace troupe::detail
