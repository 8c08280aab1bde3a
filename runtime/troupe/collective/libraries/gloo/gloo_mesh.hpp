#pragma once
#include <gloo/context.h>
#include <gloo/transport/context.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "troupe/collective/calls/group.hpp"
#include "troupe/collective/rendezvous/store.hpp"

namespace troupe::collective {

/// Connections of gloo for one group, with a close() that ends all waits. The library itself does not end the
/// wait for a message of which a part has arrived when the connection is closed on this side. Without close()
/// waits last until what they wait for is there. Thread-safe.
class closable_context final : public ::gloo::transport::Context {
 public:
  explicit closable_context(std::shared_ptr<::gloo::transport::Context> connections);

  std::unique_ptr<::gloo::transport::Pair>& getPair(int member) override;
  std::unique_ptr<::gloo::transport::Pair>& createPair(int member) override;
  /// Throws gloo::IoException after close(), as all waits do.
  std::unique_ptr<::gloo::transport::UnboundBuffer> createUnboundBuffer(void* bytes,
                                                                        std::size_t size) override;

  /// When it returns nothing is received over these connections any more. Idempotent.
  void close() noexcept;

 private:
  class buffer;
  void require_open();
  void close_connections() noexcept;

  std::shared_ptr<::gloo::transport::Context> connections_;
  std::mutex mutex_;  // guards the next two
  bool is_closed_ = false;
  std::set<buffer*> buffers_;
};

/// gloo's context of one group: a connection between every two members. Members exchange their addresses
/// through a store.
class gloo_mesh final : public ::gloo::Context {
 public:
  /// Returns when this member is connected to all others. Throws collective_error (timed_out or transport)
  /// with the rank that did not come or cannot be reached, and what `keys` throws when it knows of a loss.
  gloo_mesh(const group_description& group, store& keys, std::shared_ptr<::gloo::transport::Device> device,
            std::chrono::milliseconds timeout);

  /// Ends all waits. Nothing is received afterwards. Idempotent.
  void close() noexcept { connections_->close(); }

 private:
  /// The addresses on which a member listens for the others, in their order, one after the other.
  using addresses = std::vector<std::byte>;
  using deadline = std::chrono::steady_clock::time_point;

  addresses listen();
  addresses wait_for(int member, store& keys, deadline until) const;
  std::vector<char> address_for_me(int member, const addresses& of_all) const;
  void connect(int member, const addresses& of_all, store& keys);
  std::string key_of(int member) const;
  world_rank rank_of(member_index member) const { return group_.rank_of(member); }

  group_description group_;
  std::shared_ptr<closable_context> connections_;
};

}  // namespace troupe::collective
