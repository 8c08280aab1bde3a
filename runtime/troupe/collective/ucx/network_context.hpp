#pragma once
#include <memory>
#include <mutex>

#include "troupe/collective/ucx/network_options.hpp"

struct ucp_context;

namespace troupe {

/// UCX over the job's network interface, once for all groups of a process: begun by the first group that
/// needs it, since that takes some hundred milliseconds. Thread-safe.
class network_context {
 public:
  explicit network_context(network_options options);
  ~network_context();
  network_context(const network_context&) = delete;
  network_context& operator=(const network_context&) = delete;

  const network_options& options() const { return options_; }
  /// Throws ucx_error.
  ucp_context* get();

 private:
  struct owned;
  network_options options_;
  std::mutex beginning_;
  std::unique_ptr<owned> owned_;
};

}  // namespace troupe
