#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "troupe/posix/wake_event.hpp"

namespace troupe::collective {

/// What a thread waits for that sleeps for several groups.
struct wake_sources {
  std::vector<int> descriptors;  ///< one that is readable ends the sleep
  std::chrono::microseconds at_most = std::chrono::microseconds::max();
};

/// One thread that advances the calls which no thread waits for, of all groups of a process. It is started by
/// the first request. It spins for some microseconds after progress, then sleeps on one event and on what its
/// clients name. It never blocks in a client. Thread-safe; outlives its clients.
class progress_engine {
 public:
  /// What the engine advances, for example the calls of a group. Called on the engine's thread only.
  class client {
   public:
    /// One round of work, which does not block. Returns whether there was progress.
    virtual bool advance() = 0;
    /// Called before the engine sleeps: from here on event() is set when there is work, or one of the
    /// descriptors that this adds to `sources` becomes readable. False: there is work now.
    virtual bool prepare_sleep(wake_sources& sources) = 0;
    /// Whether there is nothing to do until the next request.
    virtual bool is_idle() = 0;

   protected:
    ~client() = default;
  };

  /// A client's place in the engine. While it lives, the engine may call the client.
  class place {
   public:
    place(progress_engine& engine, client& polled);
    /// Waits for the running round of the client.
    ~place();
    place(const place&) = delete;
    place& operator=(const place&) = delete;
    /// The engine advances the client until it is idle. What this thread has stored before is seen there.
    void request();

   private:
    friend class progress_engine;
    struct entry;
    progress_engine& engine_;
    std::shared_ptr<entry> entry_;
  };

  progress_engine() = default;
  ~progress_engine();
  progress_engine(const progress_engine&) = delete;
  progress_engine& operator=(const progress_engine&) = delete;

  /// An eventfd: setting it ends the engine's sleep. Other processes may have it too.
  int event() const { return event_.fd(); }

 private:
  using entry = place::entry;

  void wake();
  void add(const std::shared_ptr<entry>& added);
  void work();
  bool take_added();
  bool run_round();
  void sleep();

  posix::wake_event event_;
  std::atomic<bool> is_sleeping_ = false, is_stopping_ = false;
  std::mutex adding_;  // guards the next two
  std::vector<std::shared_ptr<entry>> added_;
  std::thread thread_;
  std::vector<std::shared_ptr<entry>> active_;  // of the thread
};

}  // namespace troupe::collective
