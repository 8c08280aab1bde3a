#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "troupe/collective/shm/memory/peer_process.hpp"
#include "troupe/posix/sockets/private_listener.hpp"
#include "troupe/posix/wake_event.hpp"

namespace troupe::collective {

/// Connects the processes of a job on one host: a private_listener, one connection to each other process,
/// made once for all groups, and a thread that accepts connections and notices when a
/// process ends. Accepts only processes of the same user that know the job's token. Thread-safe.
class peer_connector {
 public:
  /// Throws system_failure, and std::invalid_argument if the token is longer than 128 bytes.
  /// descriptors: of this process, for its peers: the event of its progress engine and its group_memory. They
  /// outlive it.
  peer_connector(const std::string& job_token, std::array<int, most_descriptors> descriptors);
  ~peer_connector();
  peer_connector(const peer_connector&) = delete;
  peer_connector& operator=(const peer_connector&) = delete;

  /// A random number that identifies this process.
  std::uint64_t process() const { return process_; }
  /// Of its private_listener.
  const std::string& address() const { return listener_.address(); }
  const std::string& place() const { return listener_.place(); }

  /// The connection to `process`, which listens at `address` and calls this for this process too. Blocks
  /// until `deadline` at most. Throws std::runtime_error that says why there is no connection. While it waits
  /// for the process to connect, or to accept its own connection, it calls `check` now and then, which throws
  /// if that process is lost.
  std::shared_ptr<peer_process> connection_to(std::uint64_t process, const std::string& address,
                                              std::chrono::steady_clock::time_point deadline,
                                              const std::function<void()>& check);

  /// While it lives, `on_end` is called on the connector's thread whenever a peer has ended.
  class watch {
   public:
    watch(peer_connector& connector, std::function<void()> on_end);
    ~watch();
    watch(const watch&) = delete;
    watch& operator=(const watch&) = delete;

   private:
    peer_connector& connector_;
    std::list<std::function<void()>>::iterator place_;
  };

 private:
  using peer_map = std::map<std::uint64_t, std::shared_ptr<peer_process>>;

  void serve();
  void accept_waiting();
  bool authenticate(posix::unique_fd& connection);
  bool send_hello(int socket, std::uint64_t process) const;
  void note_unusable(std::uint64_t process, const std::string& why);
  void note_accepting(int error_number);
  std::shared_ptr<peer_process> connect(std::uint64_t process, const std::string& address,
                                        std::chrono::steady_clock::time_point deadline,
                                        const std::function<void()>& check);
  std::shared_ptr<peer_process> add(std::uint64_t process, posix::unique_fd socket,
                                    std::array<posix::unique_fd, most_descriptors> descriptors);
  void report_ended(const std::vector<std::shared_ptr<peer_process>>& watched,
                    const std::vector<bool>& ended);

  std::string job_token_;
  std::array<int, most_descriptors> descriptors_;
  std::uint64_t process_ = 0;
  posix::private_listener listener_;
  posix::wake_event waker_;
  // Used by the thread only.
  struct pending_connection {
    posix::unique_fd socket;
    std::chrono::steady_clock::time_point since;
  };
  std::vector<pending_connection> unauthenticated_;  // accepted, no hello yet
  bool can_accept_ = true;                           // false for one round after descriptors have run out

  std::mutex mutex_;  // guards the next six
  bool ending_ = false;
  peer_map peers_;
  std::map<std::uint64_t, std::string> unusable_;  ///< processes that have connected in vain, and why
  std::string accept_problem_;  ///< why no connection could be accepted last; empty: one could
  std::condition_variable peer_added_;
  std::list<std::function<void()>> watches_;

  std::mutex connecting_;
  std::thread thread_;
};

}  // namespace troupe::collective
