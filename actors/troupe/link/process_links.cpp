#include "troupe/link/process_links.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace troupe::actors::link {

process_links::process_links(caf::actor_system& system, const cluster::membership_view& view,
                             process_links_options options)
    : system_(system), options_(std::move(options)), generation_(view.generation) {
  for (const auto& member : view.members)
    if (member.rank != options_.rank) incarnations_[member.rank] = member.incarnation;
}

std::shared_ptr<link> process_links::to(int rank) {
  auto member = incarnations_.find(rank);
  if (member == incarnations_.end())
    throw std::logic_error("[process_links] expected another rank of generation " +
                           std::to_string(generation_) + ", got " + std::to_string(rank) + " on rank " +
                           std::to_string(options_.rank));
  std::lock_guard lock(mutex_);
  auto& found = links_[rank];
  if (!found)
    found = link::make(system_, {rank, member->second, generation_, options_.out, options_.request_timeout,
                                 options_.on_failure});
  if (ended_by_) found->end(*ended_by_);
  return found;
}

void process_links::end(const std::vector<cluster::member_loss>& losses, const std::string& otherwise) {
  std::map<int, std::shared_ptr<link>> all;
  {
    std::lock_guard lock(mutex_);
    all = links_;
    if (!ended_by_) ended_by_ = otherwise;
  }
  for (const auto& [rank, each] : all) {
    auto loss = std::ranges::find(losses, rank, &cluster::member_loss::rank);
    each->end(loss == losses.end() ? otherwise
                                   : "rank " + std::to_string(rank) + " was lost: " + loss->cause);
  }
}

std::size_t process_links::num_links() const {
  std::lock_guard lock(mutex_);
  return links_.size();
}

}  // namespace troupe::actors::link
