#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "troupe/data/dataset.hpp"

namespace troupe::detail {

struct prefetch_options {
  /// Threads that read; 0: next() reads itself.
  int num_workers = 1;
  /// The maximum number of batches that are being read or wait to be taken.
  std::int64_t depth = 4;
};

/// Reads numbered batches ahead on threads of its own and hands them out in order, whichever thread is done
/// first.
class prefetch_queue {
 public:
  /// Called by several threads at once.
  using read_function = std::function<labelled_samples(std::int64_t number)>;

  /// Batches [first, end).
  prefetch_queue(read_function read, std::int64_t first, std::int64_t end, const prefetch_options& options);
  prefetch_queue(const prefetch_queue&) = delete;
  prefetch_queue& operator=(const prefetch_queue&) = delete;
  /// Waits for the reads that have begun.
  ~prefetch_queue();

  bool at_end() const { return next_ == end_; }
  /// The next batch; waits for it. Throws what reading it threw; then the queue hands out nothing more.
  /// Called from one thread.
  labelled_samples next();

 private:
  struct outcome {
    labelled_samples batch;
    std::exception_ptr problem;
  };

  void stop();
  void work();
  outcome read(std::int64_t number) const;

  // constant
  read_function read_;
  std::int64_t end_;
  prefetch_options options_;

  std::int64_t next_;  ///< changed by the taking thread only, under the mutex
  std::mutex mutex_;   // guards what follows
  std::condition_variable may_begin_, is_ready_;
  std::int64_t next_begun_;
  std::map<std::int64_t, outcome> ready_;
  bool is_stopping_ = false;

  std::vector<std::thread> workers_;  ///< last: they use the rest
};

}  // namespace troupe::detail
