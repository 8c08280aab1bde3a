#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "troupe/collective/calls/group.hpp"
#include "troupe/collective/engine/progress_engine.hpp"
#include "troupe/collective/net/exchange/early_messages.hpp"
#include "troupe/collective/net/exchange/ended_groups.hpp"
#include "troupe/collective/net/exchange/ucx_connections.hpp"

namespace troupe::collective {

/// One group's part of a fabric, for this member. Called with the fabric's lock, by any thread.
class message_owner {
 public:
  /// As ucx_connections::listener::on_message(). Does not throw.
  virtual bool on_message(const net::message_header& header, std::span<const std::byte> body,
                          void* descriptor) = 0;
  virtual void on_done(ucx_message& done) = 0;
  virtual void on_lost(int connection, const std::string& cause) = 0;
  /// All connections end soon, because the processes of these ranks do not answer: the last chance to tell
  /// the others. `cause`: "rank 3 did not answer within 1000 ms ...".
  virtual void on_ending(const std::vector<world_rank>& silent, const std::string& cause) = 0;
  /// Something of the above was called by a thread that polls for others.
  virtual void wake() = 0;

 protected:
  ~message_owner() = default;
};

/// The connections between this process and others, which all its groups of a generation over the network
/// share: one UCX worker, whose address the others read once, and one endpoint for each other process. A
/// message has the number of its group, a function of its description, so a group needs no exchange of
/// addresses and no number from the others. It costs a few KB of memory and the event that wakes its waiting
/// thread, and no connection and no thread.
///
/// Messages of groups that are not made here yet are kept; ended_groups takes those of groups that have
/// ended. Whoever polls receives for all groups, and wakes those for which something has come. While nobody
/// polls, the engine does, so that the messages of other members' groups that end are answered.
///
/// When a group is aborted, messages may be in flight from or to tensors of its calls, and UCX 1.13 cannot
/// cancel a single one. The other member discards what it has not begun to receive as soon as it hears of the
/// failure, and finishes the rest, which takes as long as its bytes. It may not answer in time
/// (answer_timeout), since it is stopped or cannot be reached. Then all connections of this process end, and
/// all its groups on this fabric fail, on all members, with the loss of the one that did not answer. Groups
/// that are made later connect again. Each end gives this process a new address, and every hello says how
/// many ends came before it, so that nobody takes an old connection for the new one.
class network_fabric final : private ucx_connections::listener, private progress_engine::client {
 public:
  /// `engine` outlives it. Throws ucx_error. flush_timeout and answer_timeout: see network_options.
  /// host: the address of its network interface, for messages to people; empty: unknown.
  network_fabric(ucp_context_h context, std::chrono::milliseconds flush_timeout,
                 std::chrono::milliseconds answer_timeout, progress_engine& engine, std::string host = {});
  /// After its groups. Waits up to flush_timeout until the last messages have been sent, and the others have
  /// aborted the groups that this process has. A connection that closes while its peer sends on it discards
  /// what the peer has not read yet. The peer would then be told of a lost connection instead of the cause.
  ~network_fabric();
  network_fabric(const network_fabric&) = delete;
  network_fabric& operator=(const network_fabric&) = delete;

  /// A process: its rank and incarnation.
  using process = std::pair<world_rank, std::uint32_t>;

  /// Of this process, for connect() in others. Another one after its connections have ended.
  std::string address();
  /// How often this process has ended its connections. From any thread, without the lock.
  std::uint32_t num_ends() const { return connections_.num_ends(); }
  /// The number of a group. The same on all its members.
  static std::uint64_t number_of(const group_description& group);

  /// Advances all messages, unless another thread does. Whether anything was done.
  bool progress(const message_owner* waiting);
  /// The same, after the other thread.
  bool progress_next(const message_owner* waiting);
  bool arm();
  /// From any thread, without the lock.
  int event_fd() const { return connections_.event_fd(); }
  /// While one lives, its thread sleeps on event_fd(), and the engine does not, so that a message does not
  /// wake two threads.
  class sleeper {
   public:
    explicit sleeper(network_fabric& fabric) : fabric_(fabric) { ++fabric_.num_sleepers_; }
    ~sleeper() { --fabric_.num_sleepers_; }
    sleeper(const sleeper&) = delete;
    sleeper& operator=(const sleeper&) = delete;

   private:
    network_fabric& fabric_;
  };
  /// No tensor of the group's calls is read or written any more when this returns. Takes up to
  /// answer_timeout, longer for many bytes, if members do not answer, and then ends all connections. Without
  /// the lock; after remove().
  void finish_transfers(const message_owner& owner);

  /// Guards everything; the functions below are called with it.
  std::mutex& mutex() { return mutex_; }
  ucx_connections& connections() { return connections_; }
  /// Whether there was a connection to a process, and the last one is lost.
  bool has_lost(const process& to) const;
  /// The connection to a process; a new one if there is none that is not lost, or if the process has ended
  /// its connections since. An address from before that is not used.
  int connect(const process& to, const std::string& address);
  /// The address with which its last connection was made.
  const std::string& address_of(const process& to) const { return connected_.at(to).address; }
  /// The address of the network interface in an address(), as above.
  static std::string host_in(const std::string& address);
  /// How often its process had ended its connections before the address of this one.
  std::uint32_t num_ends_of(int connection) const;
  /// Messages with this number go to `part` from now on; first those that were kept. Throws
  /// std::invalid_argument if another group of this process has this number, or has had it and some member
  /// has not ended it; std::runtime_error if messages of it could not be kept.
  void add(std::uint64_t number, message_owner& part);
  /// The group has ended. others, is_aborted: see ended_groups.
  void remove(std::uint64_t number, std::map<int, ended_groups::member> others, bool is_aborted);

 private:
  struct connected_process {
    int connection = 0;
    std::string address;
  };
  struct made_connection {
    world_rank to;
    std::uint32_t num_ends = 0;  ///< how often its process had ended its connections when it had this address
  };

  bool on_message(const net::message_header& header, std::span<const std::byte> body,
                  void* descriptor) override;
  void on_done(ucx_message& done) override;
  void on_lost(int connection, const std::string& cause) override;
  bool poll(const message_owner* waiting);
  template <class Condition>
  bool poll_until(Condition is_done, std::chrono::milliseconds at_most, const message_owner* waiting);
  void announce_end(const message_owner& owner, const std::string& cause);

  bool advance() override { return progress(nullptr); }
  bool prepare_sleep(wake_sources& sources) override;
  bool is_idle() override { return false; }

  const std::chrono::milliseconds flush_timeout_, answer_timeout_;
  const std::string host_;
  std::mutex mutex_;  // guards the rest but for the atomics
  const message_owner* polling_ = nullptr;
  std::map<process, connected_process> connected_;
  std::vector<made_connection> made_;              ///< by connection
  std::map<std::uint64_t, message_owner*> parts_;  ///< by number of the group
  early_messages early_;
  ended_groups ended_;
  ucx_connections connections_;
  std::atomic<bool> was_polled_ = false;  ///< by a group, since the engine last slept
  std::atomic<int> num_sleepers_ = 0;
  std::optional<progress_engine::place> place_;
};

}  // namespace troupe::collective
