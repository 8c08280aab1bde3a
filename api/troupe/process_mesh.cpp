#include "troupe/process_mesh.hpp"

#include <map>

#include "troupe/world.hpp"

namespace troupe {

struct ProcessMesh::state {
  World world;
  collective::mesh layout;
  std::map<std::vector<world_rank>, ProcessGroup> groups;  ///< key: the members' ranks
};

ProcessMesh::ProcessMesh(const World& world, collective::mesh layout)
    : shared_(std::make_shared<state>(state{world, std::move(layout), {}})) {}

ProcessGroup ProcessMesh::operator[](std::string_view axis) const { return slice({std::string(axis)}); }

ProcessGroup ProcessMesh::slice(const std::vector<std::string>& along) const {
  auto ranks = shared_->layout.slice(shared_->world.rank(), along);
  auto found = shared_->groups.find(ranks);
  if (found != shared_->groups.end() && !found->second.has_failed()) return found->second;
  auto made = shared_->world.new_group(ranks);
  shared_->groups.insert_or_assign(std::move(ranks), made);
  return made;
}

int ProcessMesh::coordinate(std::string_view axis) const {
  return shared_->layout.coordinate(shared_->world.rank(), axis);
}

const collective::mesh& ProcessMesh::layout() const { return shared_->layout; }

}  // namespace troupe
