#include "troupe/collective/mesh.hpp"

#include <algorithm>
#include <cstdint>

#include "troupe/error/errors.hpp"

namespace troupe::collective {
namespace {

void require_names(const std::vector<mesh_axis>& axes) {
  for (auto each = axes.begin(); each != axes.end(); ++each) {
    if (each->name.empty()) throw_invalid("mesh", "a name for each axis", "an empty one");
    if (each->size < 1)
      throw_invalid("mesh", "sizes of at least 1", each->name + " " + std::to_string(each->size));
    if (std::ranges::find(axes.begin(), each, each->name, &mesh_axis::name) != each)
      throw_invalid("mesh", "distinct names", "'" + each->name + "' twice");
  }
}

}  // namespace

mesh::mesh(std::vector<mesh_axis> axes, int world_size) : axes_(std::move(axes)), strides_(axes_.size()) {
  require_names(axes_);
  std::int64_t product = 1;
  for (auto i = axes_.size(); i-- > 0;) {
    strides_[i] = static_cast<int>(product);
    product *= axes_[i].size;
    if (product > world_size) break;
  }
  if (product != world_size)
    throw_invalid("mesh", "axes whose sizes multiply to the world's " + std::to_string(world_size) + " ranks",
                  axes_.empty() ? "no axis" : text());
  size_ = world_size;
}

int mesh::coordinate(world_rank rank, std::string_view axis) const {
  require_rank(rank);
  auto i = index_of(axis);
  return rank / strides_[i] % axes_[i].size;
}

std::vector<int> mesh::coordinates(world_rank rank) const {
  require_rank(rank);
  std::vector<int> at;
  for (std::size_t i = 0; i < axes_.size(); ++i) at.push_back(rank / strides_[i] % axes_[i].size);
  return at;
}

world_rank mesh::rank_at(std::span<const int> coordinates) const {
  if (coordinates.size() != axes_.size())
    throw_invalid("mesh::rank_at", std::to_string(axes_.size()) + " coordinates",
                  std::to_string(coordinates.size()));
  int rank = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (coordinates[i] < 0 || coordinates[i] >= axes_[i].size)
      throw_invalid("mesh::rank_at",
                    "a coordinate of " + axes_[i].name + " in [0, " + std::to_string(axes_[i].size) + ")",
                    std::to_string(coordinates[i]));
    rank += coordinates[i] * strides_[i];
  }
  return rank;
}

std::vector<world_rank> mesh::slice(world_rank rank, const std::vector<std::string>& along) const {
  auto first = coordinates(rank);
  for (const auto& axis : along) {
    auto i = index_of(axis);
    if (first[i] < 0) throw_invalid("mesh::slice", "distinct axes", "'" + axis + "' twice");
    first[i] = -1;
  }
  std::vector<world_rank> ranks;
  for (int other = 0; other < size_; ++other) {
    auto at = coordinates(other);
    bool is_in = std::ranges::equal(first, at, [](int fixed, int is) { return fixed < 0 || fixed == is; });
    if (is_in) ranks.push_back(other);
  }
  return ranks;
}

std::vector<std::vector<world_rank>> mesh::slices(const std::vector<std::string>& along) const {
  std::vector<std::vector<world_rank>> all;
  for (int rank = 0; rank < size_; ++rank)
    if (auto ranks = slice(rank, along); ranks.front() == rank) all.push_back(std::move(ranks));
  return all;
}

std::string mesh::text() const {
  std::string made;
  for (const auto& axis : axes_)
    made += (made.empty() ? "" : " x ") + axis.name + ' ' + std::to_string(axis.size);
  return made;
}

std::size_t mesh::index_of(std::string_view axis) const {
  auto found = std::ranges::find(axes_, axis, &mesh_axis::name);
  if (found == axes_.end())
    throw_invalid("mesh", "an axis of the mesh " + text(), "'" + std::string(axis) + "'");
  return static_cast<std::size_t>(found - axes_.begin());
}

void mesh::require_rank(world_rank rank) const {
  if (rank < 0 || rank >= size_)
    throw_invalid("mesh", "a rank in [0, " + std::to_string(size_) + ")", to_string(rank));
}

}  // namespace troupe::collective
