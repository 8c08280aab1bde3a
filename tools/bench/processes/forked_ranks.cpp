#include "bench/processes/forked_ranks.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <stdexcept>

#include "troupe/collective/group/store.hpp"
#include "troupe/collective/group/ucx_group.hpp"

namespace troupe::bench {
namespace {

class temporary_folder {
 public:
  temporary_folder() {
    if (!::mkdtemp(name_)) throw std::runtime_error("no folder can be made in /tmp");
  }
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(name_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  std::filesystem::path path() const { return name_; }

 private:
  char name_[32] = "/tmp/troupe-ranks-XXXXXX";
};

[[noreturn]] void run_child(int rank, int count, const std::filesystem::path& folder,
                            const std::function<void(forked_rank&)>& body) {
  int exit_code = 0;
  try {
    forked_rank self(rank, count, folder);
    body(self);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    exit_code = 1;
  }
  ::_exit(exit_code);
}

bool wait_for_success(const std::vector<pid_t>& children) {
  bool result = true;
  for (auto child : children) {
    int status = 0;
    result = ::waitpid(child, &status, 0) == child && status == 0 && result;
  }
  return result;
}

}  // namespace

struct forked_rank::content {
  explicit content(std::filesystem::path folder) : keys(std::move(folder)), resources("bench") {}
  folder_store keys;
  ucx_group_resources resources;
};

forked_rank::forked_rank(int rank, int size, std::filesystem::path folder)
    : rank_(rank), size_(size), content_(std::make_unique<content>(std::move(folder))) {}

forked_rank::~forked_rank() = default;

std::unique_ptr<communicator> forked_rank::make_group(const std::string& name,
                                                      const communicator_options& options) {
  group_description group{name, std::vector<world_rank>(static_cast<std::size_t>(size_)), rank_};
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  return make_ucx_group(group, content_->keys, content_->resources, options);
}

void run_forked(int count, const std::function<void(forked_rank&)>& body) {
  temporary_folder folder;
  std::vector<pid_t> children;
  for (int rank = 1; rank < count; ++rank) {
    auto child = ::fork();
    if (child < 0) throw std::runtime_error("no process can be forked");
    if (child == 0) run_child(rank, count, folder.path(), body);
    children.push_back(child);
  }
  try {
    forked_rank self(0, count, folder.path());
    body(self);
  } catch (...) {
    wait_for_success(children);
    throw;
  }
  if (!wait_for_success(children)) throw std::runtime_error("a rank of the bench failed");
}

}  // namespace troupe::bench
