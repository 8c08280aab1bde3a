#include "troupe/pipeline/detail/parameters/parameter_shards.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "troupe/tensor/async/async_device_copy.hpp"
#include "troupe/tensor/memory.hpp"

namespace troupe::detail {
namespace {

std::vector<layout::shard_piece> assignment_of(const std::vector<named_parameter>& parameters,
                                               const owned_shard& which) {
  std::vector<std::int64_t> sizes;
  for (const auto& each : parameters) sizes.push_back(each.target->extents.num_elements());
  auto assigned = layout::assign_to_shards(sizes, which.count, which.granularity);
  for (auto& piece : assigned) piece.shard = (piece.shard + which.rotation) % which.count;
  return assigned;
}

/// The piece's elements of a tensor with the parameter's shape; with that shape, if these are all. Undefined
/// for an undefined tensor.
tensor view_of(const tensor& whole, const layout::shard_piece& piece) {
  if (!whole.defined() || piece.count == whole.num_elements()) return whole;
  return in_a_row(whole).rows(piece.first, piece.count);
}

}  // namespace

parameter_shards::parameter_shards(std::vector<named_parameter> parameters,
                                   const std::vector<std::size_t>& by_use, const owned_shard& which,
                                   const std::vector<std::vector<named_parameter>>& sharing)
    : parameters_(std::move(parameters)),
      which_(which),
      assigned_(assignment_of(parameters_, which)),
      num_missing_(parameters_.size()) {
  owners_.num_replicas = which.count;
  for (std::size_t index = 0; index < parameters_.size(); ++index)
    index_of_.emplace(parameters_[index].target, index);
  for (std::size_t piece = 0; piece < assigned_.size(); ++piece) {
    const auto& name = parameters_[assigned_[piece].tensor].name;
    pieces_.push_back({name, &make_piece(piece)});
    if (which_.frees_gradients) sent_.push_back({name, &make_sent(piece)});
    owners_.of_parameter.push_back(assigned_[piece].shard);
  }
  for (auto index : by_use) {
    auto [first, end] = pieces_of(*parameters_[index].target);
    for (auto piece = first; piece < end; ++piece) by_use_.push_back(piece);
  }
  for (const auto& group : sharing)
    for (std::size_t i = 1; i < group.size(); ++i) sharing_[group.front().target].push_back(group[i].target);
  make_buckets();
}

parameter& parameter_shards::make_piece(std::size_t piece) {
  auto& whole = whole_of(piece);
  auto value = view_of(whole.value_in_update(), assigned_[piece]);
  auto& made = made_.emplace_back(whole.name, value.shape(), nullptr);
  made.attach(which_.frees_values && assigned_[piece].shard == which_.index ? value.clone() : value);
  if (!which_.frees_gradients) made.attach_gradient(view_of(whole.gradient_in_update(), assigned_[piece]));
  made.requires_gradient = whole.requires_gradient;
  return made;
}

/// Without a value, which would be the parameter's.
parameter& parameter_shards::make_sent(std::size_t piece) {
  auto& whole = whole_of(piece);
  auto value = view_of(whole.value_in_update(), assigned_[piece]);
  auto& made = made_.emplace_back(whole.name, value.shape(), nullptr);
  made.attach(std::move(value));
  made.detach();
  made.requires_gradient = whole.requires_gradient;
  return made;
}

void parameter_shards::attach_values() {
  if (!which_.frees_values) return;
  memory_scope counted(memory_category::parameters);
  for (const auto& each : parameters_) {
    auto& whole = *each.target;
    if (!whole.value_in_update().defined())
      whole.attach(tensor::empty(whole.extents, dtype::f32, whole.place()));
    if (auto found = sharing_.find(&whole); found != sharing_.end())
      for (auto* other : found->second) other->attach(whole.value());
    auto [first, end] = pieces_of(whole);
    for (auto piece = first; piece < end; ++piece) {
      auto view = view_of(whole.value(), assigned_[piece]);
      auto& made = *pieces_[piece].target;
      if (is_owned(piece))
        view.copy_from(made.value());
      else
        made.attach(std::move(view));
    }
  }
}

void parameter_shards::release_values() {
  if (!which_.frees_values) return;
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece)
    if (!is_owned(piece)) pieces_[piece].target->detach();
  for (const auto& each : parameters_) {
    each.target->detach();
    if (auto found = sharing_.find(each.target); found != sharing_.end())
      for (auto* other : found->second) other->detach();
  }
}

std::vector<named_parameter> parameter_shards::owned() const {
  std::vector<named_parameter> owned;
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece)
    if (is_owned(piece)) owned.push_back(pieces_[piece]);
  return owned;
}

std::size_t parameter_shards::index_in_owned(std::size_t piece) const {
  const auto& owners = owners_.of_parameter;
  return static_cast<std::size_t>(
      std::count(owners.begin(), owners.begin() + static_cast<std::ptrdiff_t>(piece), which_.index));
}

std::pair<std::size_t, std::size_t> parameter_shards::pieces_of(const parameter& whole) const {
  auto found = index_of_.find(&whole);
  if (found == index_of_.end()) return {0, 0};
  auto [first, end] = std::ranges::equal_range(assigned_, found->second, {}, &layout::shard_piece::tensor);
  return {static_cast<std::size_t>(first - assigned_.begin()),
          static_cast<std::size_t>(end - assigned_.begin())};
}

void parameter_shards::take_gradients() {
  for (const auto& each : parameters_) take_gradient(*each.target);
}

void parameter_shards::take_gradient(const parameter& whole) {
  if (freed_.contains(&whole)) return;
  auto [first, end] = pieces_of(whole);
  for (auto piece = first; piece < end; ++piece) {
    auto& source = whole_of(piece);
    auto& made = *sent()[piece].target;
    made.gradient_in_update() = view_of(source.gradient_in_update(), assigned_[piece]);
    made.has_gradient = source.has_gradient;
  }
}

void parameter_shards::free_gradient(parameter& whole) {
  auto [first, end] = pieces_of(whole);
  for (auto piece = first; piece < end; ++piece) sent_[piece].target->detach_gradient();
  whole.detach_gradient();
  freed_.insert(&whole);
}

void parameter_shards::free_gradients() {
  for (const auto& each : parameters_) free_gradient(*each.target);
  for (const auto& each : pieces_) each.target->detach_gradient();
  freed_.clear();
}

void parameter_shards::mark_stepped() {
  for (auto& each : made_) each.has_gradient = false;
  for (const auto& each : parameters_)
    if (each.target->requires_gradient) each.target->mark_stepped();
}

std::int64_t parameter_shards::weight_bucket::num_elements() const {
  return std::accumulate(
      parts.begin(), parts.end(), std::int64_t{0},
      [](std::int64_t sum, const optim::parameter_part& each) { return sum + each.count; });
}

/// As gradients travel; what no step changes comes last.
void parameter_shards::make_buckets() {
  for (bool is_stepped : {true, false}) {
    std::vector<parameter*> taken;
    std::vector<std::size_t> pieces;
    bucket_owners owners{which_.count, {}};
    for (auto piece : by_use_)
      if (pieces_[piece].target->requires_gradient == is_stepped) {
        taken.push_back(pieces_[piece].target);
        pieces.push_back(piece);
        owners.of_parameter.push_back(owners_.of_parameter[piece]);
      }
    auto layout = layout_of(taken, {}, nullptr, owners, layout_scope::all);
    for (int owner = 0; owner < which_.count; ++owner) {
      weight_bucket packed{owner, is_stepped};
      for (auto index : layout.packed[static_cast<std::size_t>(owner)].parameters)
        packed.parts.push_back({pieces[index], 0, taken[index]->extents.num_elements()});
      if (packed.num_elements() > 0) buckets_.push_back(std::move(packed));
    }
    for (const auto& [index, first, count] : layout.large)
      buckets_.push_back({owners.of_parameter[index], is_stepped, {{pieces[index], first, count}}});
  }
}

tensor parameter_shards::elements_of(const optim::parameter_part& part) const {
  return optim::elements_of(pieces_[part.index].target->value_in_update(), part);
}

std::vector<program::stage_parameters::weight_bucket> parameter_shards::weight_buckets() const {
  std::vector<program::stage_parameters::weight_bucket> result;
  for (const auto& each : buckets_) result.push_back({each.owner, each.is_stepped});
  return result;
}

tensor parameter_shards::weights_in(int bucket) const {
  const auto& wanted = buckets_.at(static_cast<std::size_t>(bucket));
  if (wanted.parts.size() == 1) return elements_of(wanted.parts.front());
  auto packed =
      tensor::empty({wanted.num_elements()}, dtype::f32, elements_of(wanted.parts.front()).device());
  std::int64_t next = 0;
  for (const auto& part : wanted.parts) {
    if (part.count > 0) packed.rows(next, part.count).copy_from(elements_of(part));
    next += part.count;
  }
  return packed;
}

void parameter_shards::take_weights(int bucket, const tensor& weights) {
  const auto& taken = buckets_.at(static_cast<std::size_t>(bucket));
  if (weights.dtype() != dtype::f32 || weights.num_elements() != taken.num_elements())
    throw std::logic_error("[stage_program::take_weights] expected " + std::to_string(taken.num_elements()) +
                           " weights of replica " + std::to_string(taken.owner) + " in f32, got " +
                           describe(weights));
  std::int64_t next = 0;
  for (const auto& part : taken.parts) {
    auto into = elements_of(part);
    if (part.count > 0) into.copy_from(async_device_copy(weights.rows(next, part.count), into.device()));
    next += part.count;
    auto whole = assigned_[part.index].tensor;
    if (!which_.frees_values) parameters_[whole].target->mark_changed();  // else A says so
    if (num_missing_[whole] > 0) --num_missing_[whole];
  }
}

void parameter_shards::begin_gather(const std::vector<int>& missing) {
  std::ranges::fill(num_missing_, 0);
  for (auto bucket : missing)
    for (const auto& part : buckets_.at(static_cast<std::size_t>(bucket)).parts)
      ++num_missing_[assigned_[part.index].tensor];
}

std::optional<tensor_contents> parameter_shards::contents_of(const named_tensor& held) const {
  auto named = [&held](const named_parameter& piece) {
    return held.name == piece.name || held.name.starts_with(piece.name + "/");
  };
  for (std::size_t piece = 0; piece < pieces_.size(); ++piece) {
    if (!is_owned(piece) || !named(pieces_[piece])) continue;
    if (held.value.shape() != pieces_[piece].target->extents) return {};
    auto found = whole_contents(held.name, held.value.dtype(), whole_of(piece).extents);
    found.begin = assigned_[piece].first;
    found.end = found.begin + assigned_[piece].count;
    return found;
  }
  return {};
}

}  // namespace troupe::detail
