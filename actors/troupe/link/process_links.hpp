#pragma once
#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "troupe/cluster/membership.hpp"
#include "troupe/link/link.hpp"

namespace troupe::actors::link {

struct process_links_options {
  int rank = 0;
  transport::transport* out = nullptr;
  std::chrono::seconds request_timeout = link_options().request_timeout;
  /// See link_options.
  std::function<void(int rank, const std::string& cause)> on_failure = [](int, const std::string&) {};
};

/// The links of one process in one generation, each made when it is first needed: by an actor here that sends
/// to a remote one, or by a request from there. Thread-safe.
class process_links {
 public:
  /// `view` says which incarnation each remote rank has.
  process_links(caf::actor_system& system, const cluster::membership_view& view,
                process_links_options options);
  ~process_links() { end({}, "its process has left the job"); }
  process_links(const process_links&) = delete;
  process_links& operator=(const process_links&) = delete;

  /// A proxy of the actor that remote rank `rank` hosts. Throws std::logic_error for this process's own rank
  /// and for ranks that are not in the view.
  caf::actor proxy(int rank, actor::actor_role role, std::uint32_t number) {
    return to(rank)->proxy(role, number);
  }
  /// Throws as proxy.
  std::shared_ptr<link> to(int rank);
  bool reaches(int rank) const { return incarnations_.contains(rank); }
  /// Ends all links: those to lost ranks with the cause of their loss, the others with `otherwise`.
  void end(const std::vector<cluster::member_loss>& losses, const std::string& otherwise);
  std::size_t num_links() const;

 private:
  caf::actor_system& system_;
  const process_links_options options_;
  const std::uint64_t generation_;
  std::map<int, std::uint32_t> incarnations_;

  mutable std::mutex mutex_;
  std::map<int, std::shared_ptr<link>> links_;
  /// Why end() was called. Links that are made later have ended from the beginning.
  std::optional<std::string> ended_by_;
};

}  // namespace troupe::actors::link
