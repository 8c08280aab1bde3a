#include "troupe/collective/net/network_context.hpp"

#include "troupe/transport/ucx_context.hpp"

namespace troupe {

struct network_context::owned {
  ucx_context context;
};

network_context::network_context(network_options options) : options_(std::move(options)) {}
network_context::~network_context() = default;

// TCP only: UCX reports broken connections, and a peer cannot write to this process's memory.
ucp_context* network_context::get() {
  std::lock_guard lock(mutex_);
  if (!owned_)
    owned_ = std::make_unique<owned>(
        owned{make_ucx_context("tcp", options_.interface, large_messages::are_written)});
  return owned_->context.get();
}

}  // namespace troupe
