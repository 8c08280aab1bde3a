#include "troupe/collective/group/ucx_group.hpp"

#include <algorithm>

#include "troupe/collective/hierarchy/hierarchy_backend.hpp"
#include "troupe/collective/shm/process_backend.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::collective {
namespace {

void require_own_processes(const std::vector<member_info>& infos, int member) {
  auto own = infos[static_cast<std::size_t>(member)].process;
  if (std::ranges::count(infos, own, &member_info::process) > 1)
    throw_invalid("make_ucx_group", "one member in each process", "two (use make_local_group for threads)");
}

/// With different sizes members would wait for messages that are never sent.
void require_same_sizes(const std::vector<member_info>& infos, const group_description& group) {
  for (std::size_t i = 1; i < infos.size(); ++i)
    if (infos[i].sizes != infos[0].sizes)
      throw bad_input("group " + group.name + ": --network-sizes is " + infos[0].sizes + " on rank " +
                      to_string(group.ranks[0]) + " and " + infos[i].sizes + " on rank " +
                      to_string(group.ranks[i]) + ": start all processes with the same");
}

std::unique_ptr<collective_backend> make_backend(rendezvous& point, const std::vector<member_info>& infos,
                                                 ucx_group_resources& resources) {
  std::vector<std::string> hosts;
  for (const auto& info : infos) hosts.push_back(info.host);
  hierarchy::host_topology topology(hosts);
  bool all_are_alone = topology.num_hosts() == topology.num_members() && topology.num_members() > 1;
  if (all_are_alone || resources.network.options().path == group_path::network)
    return std::make_unique<network_backend>(point, resources);
  auto local = connect_host_members(point, infos, resources);
  if (topology.num_hosts() == 1)
    return std::make_unique<process_backend>(point.group(), resources, std::move(local.peers),
                                             std::move(local.area));
  return std::make_unique<hierarchy_backend>(point, resources, std::move(topology), std::move(local));
}

}  // namespace

std::unique_ptr<communicator> make_ucx_group(const group_description& group, store& keys,
                                             ucx_group_resources& resources, communicator_options options) {
  options.engine = resources.engine;
  rendezvous point(group, keys, options.timeout);
  const auto& options_here = resources.network.options();
  auto host = options_here.host.empty() ? this_host() + '/' + resources.connector.place() : options_here.host;
  member_info own{std::move(host), resources.connector.process(), resources.connector.address(),
                  to_string(options_here.sizes)};
  std::vector<member_info> infos;
  for (const auto& text : resources.processes.texts_of(point, "member info", [&] { return to_string(own); }))
    infos.push_back(parse_member_info(text));
  require_own_processes(infos, point.member());
  require_same_sizes(infos, group);
  auto backend = make_backend(point, infos, resources);
  return std::make_unique<communicator>(group, std::move(backend), std::move(options));
}

}  // namespace troupe::collective
