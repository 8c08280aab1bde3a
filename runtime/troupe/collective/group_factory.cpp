#include "troupe/collective/group_factory.hpp"

#include "troupe/collective/local/local_group.hpp"
#include "troupe/collective/ucx/ucx_group.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {

group_factory::group_factory(group_factory_options options) : options_(std::move(options)) {}
group_factory::~group_factory() = default;

std::unique_ptr<communicator> group_factory::make(const group_description& group, store& keys,
                                                  const communicator_options& options) {
  if (group.size() == 1) return std::move(make_local_group(group.ranks, options, group.name).front());
  if (options_.backend == "ucx") {
    if (!ucx_) ucx_ = std::make_unique<ucx_group_resources>(options_.job_token, options_.between_hosts);
    return make_ucx_group(group, keys, *ucx_, options);
  }
  if (options_.backend == "local")
    throw bad_input("--backend local carries calls between threads of one process, and group " + group.name +
                    " has " + std::to_string(group.size()) + " processes: use --backend ucx");
  throw bad_input("--backend " + options_.backend +
                  " is for programs that make its groups themselves, so group " + group.name + " of " +
                  std::to_string(group.size()) + " processes cannot begin: use --backend ucx");
}

}  // namespace troupe
