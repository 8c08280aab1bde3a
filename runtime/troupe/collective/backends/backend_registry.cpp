#include "troupe/collective/backends/backend_registry.hpp"

#include <algorithm>

#include "troupe/collective/group/ucx_group.hpp"
#include "troupe/collective/shm/local_group.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::collective {

backend_registry::backend_registry(const std::string& backend, const std::vector<group_backend>& linked,
                                   backend_options options)
    : backend_(backend), options_(std::move(options)) {
  if (backend == "ucx" || backend == "local") return;
  auto found = std::ranges::find(linked, backend, &group_backend::name);
  if (found == linked.end())
    throw bad_input("--backend " + backend + " is not linked into this program: link troupe::collective_" +
                    backend + " and give its World " + backend + "_groups(), or use --backend ucx");
  makes_groups_of_one_ = found->makes_groups_of_one;
  if (options_.world_size > 1 || makes_groups_of_one_) linked_ = found->start(options_);
}

backend_registry::~backend_registry() = default;

std::unique_ptr<communicator> backend_registry::make(const group_description& group, store& keys,
                                                     communicator_options options) {
  options.engine = engine_;
  if (group.size() == 1 && !makes_groups_of_one_)
    return std::move(make_local_group(group.ranks, options, group.name).front());
  if (linked_) return linked_->make(group, keys, options);
  if (backend_ == "local")
    throw bad_input("--backend local carries calls between threads of one process, and group " + group.name +
                    " has " + std::to_string(group.size()) + " processes: use --backend ucx");
  if (!ucx_)
    ucx_ = std::make_unique<ucx_group_resources>(
        job_token_, network_options{.interface = options_.network_interface, .sizes = options_.sizes},
        engine_);
  return make_ucx_group(group, keys, *ucx_, options);
}

}  // namespace troupe::collective
