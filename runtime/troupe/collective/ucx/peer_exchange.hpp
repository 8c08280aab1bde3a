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

#include "troupe/collective/ucx/host_peer.hpp"
#include "troupe/posix/wake_event.hpp"

namespace troupe {

/// How the processes of a job on one host find each other: a Unix socket with an abstract name on which this
/// one is found, one connection to each other process, made once for all groups, and a thread that welcomes
/// others and sees them end. Only processes of the same user that know the job's token come in.
/// Thread-safe.
class peer_exchange {
 public:
  /// Throws system_failure, and std::invalid_argument if the token is longer than 128 bytes.
  explicit peer_exchange(const std::string& job_token);
  ~peer_exchange();
  peer_exchange(const peer_exchange&) = delete;
  peer_exchange& operator=(const peer_exchange&) = delete;

  /// A number of this process that no other one has.
  std::uint64_t process() const { return process_; }
  /// Where others find it.
  const std::string& address() const { return address_; }

  /// The connection to `process` at `address`, where this process is awaited by meet() too. Throws
  /// std::runtime_error that says why there is none before `deadline`.
  std::shared_ptr<host_peer> meet(std::uint64_t process, const std::string& address,
                                  std::chrono::steady_clock::time_point deadline);

  /// While it lives, `on_end` is called on the exchange's thread whenever a peer has ended.
  class watch {
   public:
    watch(peer_exchange& of, std::function<void()> on_end);
    ~watch();
    watch(const watch&) = delete;
    watch& operator=(const watch&) = delete;

   private:
    peer_exchange& of_;
    std::list<std::function<void()>>::iterator place_;
  };

 private:
  using peer_map = std::map<std::uint64_t, std::shared_ptr<host_peer>>;

  void serve();
  void welcome();
  bool shake_hands(unique_fd& with);
  std::shared_ptr<host_peer> connect(std::uint64_t process, const std::string& address,
                                     std::chrono::steady_clock::time_point deadline);
  std::shared_ptr<host_peer> add(std::uint64_t process, unique_fd socket);
  void see_off(const std::vector<std::shared_ptr<host_peer>>& watched, const std::vector<bool>& ended);

  std::string job_token_;
  std::uint64_t process_ = 0;
  std::string address_;
  unique_fd listener_;
  wake_event waker_;
  // The thread's own.
  struct stranger {
    unique_fd socket;
    std::chrono::steady_clock::time_point since;
  };
  std::vector<stranger> strangers_;  // connected, have not said who they are
  bool accepts_ = true;              // false until the next turn: there was no descriptor

  std::mutex mutex_;  // guards the next four
  bool ending_ = false;
  peer_map peers_;
  std::condition_variable arrived_;
  std::list<std::function<void()>> watches_;

  std::mutex connecting_;
  std::thread thread_;
};

}  // namespace troupe
