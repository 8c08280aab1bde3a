#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>

#include "troupe/cluster/agent_messages.hpp"
#include "troupe/collective/rendezvous/store.hpp"

namespace troupe::cluster {

/// A member's client of the agent's key-value store (see key_values for its limits). Every call is a request
/// and a reply over the member's connection. Thread-safe.
class agent_store final : public collective::store {
 public:
  using sender = std::function<void(const agent_wire::client_message&)>;
  explicit agent_store(sender send) : send_(std::move(send)) {}

  /// Blocks until the agent has stored it. Throws std::invalid_argument when it refuses (too long, too
  /// much), and job_failed when the job has ended; job_stopped where a signal stopped it.
  void put(const std::string& key, std::span<const std::byte> value) override;
  /// `timeout` counts the way to the agent and back: with 0 no value is ever found. Throws as put.
  std::optional<std::vector<std::byte>> get(const std::string& key,
                                            std::chrono::milliseconds timeout) override;

  void on_reply(const agent_wire::store_reply& reply);
  /// The connection has ended: waiting and later calls throw job_failed, or job_stopped if `stop_signal` is
  /// the signal that stopped the job.
  void close(const std::string& cause, int stop_signal = 0);

 private:
  struct request {
    bool answered = false;
    agent_wire::store_reply reply;
  };
  std::uint64_t begin();
  void throw_if_closed() const;
  std::optional<agent_wire::store_reply> await(std::uint64_t number, std::chrono::milliseconds timeout);

  sender send_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t last_request_ = 0;
  std::map<std::uint64_t, request> requests_;
  std::optional<std::string> closed_;
  int stop_signal_ = 0;  ///< that closed it; 0: none
};

}  // namespace troupe::cluster
