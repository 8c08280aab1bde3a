#pragma once
#include <gloo/context.h>

#include <chrono>
#include <string>
#include <vector>

#include "troupe/collective/gloo/breakable_context.hpp"
#include "troupe/collective/group.hpp"
#include "troupe/collective/store.hpp"

namespace troupe {

/// gloo's context of one group: a connection between any two members, who tell each other their addresses
/// through a store.
class gloo_mesh final : public ::gloo::Context {
 public:
  /// Returns when this member is connected to all others. Throws collective_error: timed_out or transport,
  /// with the rank that did not come or cannot be reached; and what `keys` throws when it knows of a loss.
  gloo_mesh(const group_description& group, store& keys, std::shared_ptr<::gloo::transport::Device> device,
            std::chrono::milliseconds timeout);

  /// All that waits for these connections ends, and nothing comes over them any more. Idempotent.
  void break_off() noexcept { connections_->break_off(); }

 private:
  /// Where a member listens for the others, one address after the other, without one for itself.
  using addresses = std::vector<std::byte>;
  using deadline = std::chrono::steady_clock::time_point;

  addresses listen();
  addresses wait_for(int member, store& keys, deadline until) const;
  std::vector<char> address_for_me(int member, const addresses& of_all) const;
  void connect(int member, const addresses& of_all, store& keys);
  std::string key_of(int member) const;
  int rank_of(int member) const { return group_.ranks[static_cast<std::size_t>(member)]; }

  group_description group_;
  std::shared_ptr<breakable_context> connections_;
};

}  // namespace troupe
