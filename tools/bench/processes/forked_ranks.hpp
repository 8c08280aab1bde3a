#pragma once
#include <filesystem>
#include <functional>

#include "troupe/collective/communicator.hpp"

namespace troupe::bench {

/// One of several processes that were forked from one, which is rank 0.
class forked_rank {
 public:
  forked_rank(int rank, int size, std::filesystem::path folder);
  ~forked_rank();
  forked_rank(const forked_rank&) = delete;
  forked_rank& operator=(const forked_rank&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// A group of all ranks over `ucx`, which all make under this name, once.
  std::unique_ptr<communicator> make_group(const std::string& name, const communicator_options& options = {});

 private:
  struct content;
  int rank_, size_;
  std::unique_ptr<content> content_;
};

/// Runs `body` in `count` processes; to be called before this one has threads. In rank 0 it returns, or
/// throws what `body` threw, when all have ended; the others end within. Throws std::runtime_error if another
/// rank failed.
void run_forked(int count, const std::function<void(forked_rank&)>& body);

}  // namespace troupe::bench
