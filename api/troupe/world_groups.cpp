// World's functions that create groups of its processes and devices.
#include <algorithm>
#include <numeric>

#include "troupe/collective/shm/local_group.hpp"
#include "troupe/detail/world_state.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/world.hpp"

namespace troupe {
namespace {

void require_ranks(const std::vector<world_rank>& ranks, int world_size) {
  if (ranks.empty()) throw_invalid("new_group", "at least one rank", "none");
  std::vector<bool> seen(static_cast<std::size_t>(world_size));
  for (auto rank : ranks) {
    if (rank < 0 || rank >= world_size)
      throw_invalid("new_group", "ranks in [0, " + std::to_string(world_size) + ")", to_string(rank));
    if (seen[static_cast<std::size_t>(rank)])
      throw_invalid("new_group", "distinct ranks", to_string(rank) + " twice");
    seen[static_cast<std::size_t>(rank)] = true;
  }
}

communicator_options checked(const group_options& options,
                             std::shared_ptr<collective::communication_profile> profile,
                             std::shared_ptr<collective::open_groups> listed_in = nullptr) {
  if (options.timeout.count() <= 0)
    throw_invalid("new_group", "a time-out above 0", std::to_string(options.timeout.count()) + " ms");
  return {.timeout = std::min(options.timeout, longest_timeout),
          .profile = std::move(profile),
          .listed_in = std::move(listed_in)};
}

/// A group that keeps its World alive.
template <class Content>
ProcessGroup kept(std::shared_ptr<Content> world, std::shared_ptr<communicator> group) {
  struct both {
    std::shared_ptr<Content> world;
    std::shared_ptr<communicator> group;
  };
  auto keep_alive = std::make_shared<both>(both{std::move(world), std::move(group)});
  return ProcessGroup(std::shared_ptr<communicator>(keep_alive, keep_alive->group.get()));
}

}  // namespace

World World::started(std::shared_ptr<state> shared) {
  if (shared->shown_profile != config::profile_form::none)
    shared->profile = std::make_shared<collective::communication_profile>();
  enter_frame(*shared);
  shared->backends->set_job_token(shared->self->group_token());
  shared->groups = std::make_shared<collective::group_builder>(
      shared->self->rank(), shared->self->members(), shared->self->keys(),
      [backends = shared->backends.get()](const group_description& group, collective::store& keys,
                                          const communicator_options& options) {
        return backends->make(group, keys, options);
      });
  return World(std::move(shared));
}

execution::group_maker World::state::job_groups() const {
  if (!backends->is_linked()) return {};
  return [builder = std::weak_ptr(groups), profile = profile,
          open = open](const execution::wanted_group& wanted) {
    auto living = builder.lock();
    if (!living)
      throw collective_error(collective_failure::cancelled, wanted.name, 0, {},
                             "this process leaves the job");
    auto settings = checked({.timeout = longest_timeout}, profile, open);  // a member may restore for long
    settings.on_call_end = wanted.on_call_end;
    return living->build_in(wanted.generation, wanted.name, wanted.ranks, settings, wanted.check);
  };
}

ProcessGroup World::default_group() {
  auto& known = shared_->default_group;
  if (!known || known->failure()) {
    shared_->running.require_no_callback("World::default_group");
    std::vector<world_rank> all_ranks(static_cast<std::size_t>(world_size()));
    std::iota(all_ranks.begin(), all_ranks.end(), 0);
    known = shared_->groups->build("default", all_ranks, checked({}, shared_->profile, shared_->open));
  }
  return kept(shared_, known);
}

ProcessGroup World::new_group(const std::vector<world_rank>& ranks, const group_options& options) {
  require_ranks(ranks, world_size());
  auto communicator_settings = checked(options, shared_->profile, shared_->open);
  if (std::ranges::count(ranks, rank()) == 0) return ProcessGroup::non_member(ranks);
  shared_->running.require_no_callback("World::new_group");
  return kept(shared_, shared_->groups->build(collective::group_builder::name_of(ranks), ranks,
                                              communicator_settings));
}

ProcessMesh World::mesh(std::vector<collective::mesh_axis> axes) const {
  return ProcessMesh(*this, troupe::collective::mesh(std::move(axes), world_size()));
}

std::vector<ProcessGroup> World::local_groups(const group_options& options) {
  std::vector<ProcessGroup> groups;
  auto settings = checked(options, shared_->profile);
  settings.engine = shared_->backends->engine();
  for (auto& member : collective::make_local_group(shared_->options.devices, settings, "devices"))
    groups.push_back(kept(shared_, std::shared_ptr<communicator>(std::move(member))));
  return groups;
}

}  // namespace troupe
