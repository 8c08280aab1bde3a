#include "troupe/collective/group_factory.hpp"

#include "troupe/collective/local/local_group.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {

std::unique_ptr<communicator> group_factory::make(const group_description& group, store&,
                                                  const communicator_options& options) {
  if (group.size() == 1) return std::move(make_local_group(group.ranks, options, group.name).front());
  if (backend_ == "local")
    throw bad_input("--backend local carries calls between threads of one process, and group " + group.name +
                    " has " + std::to_string(group.size()) + " processes: use --backend ucx");
  throw bad_input("--backend " + backend_ + " is not in this build, so group " + group.name + " of " +
                  std::to_string(group.size()) + " processes cannot begin");
}

}  // namespace troupe
