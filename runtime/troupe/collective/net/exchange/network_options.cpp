#include "troupe/collective/net/exchange/network_options.hpp"

#include <utility>

#include "troupe/collective/net/exchange/network_fabric.hpp"
#include "troupe/posix/sockets/interface_address.hpp"
#include "troupe/ucx/ucx_context.hpp"

namespace troupe::collective {

struct network_context::shared_context {
  ucx::ucx_context context;
};

network_context::network_context(network_options options, progress_engine& engine)
    : options_(std::move(options)), engine_(engine) {}
network_context::~network_context() = default;

// TCP only: UCX reports broken connections, and a peer cannot write to this process's memory.
std::shared_ptr<network_fabric> network_context::fabric(std::uint64_t generation) {
  std::shared_ptr<network_fabric> ended;  // without the lock, since it waits for its last messages
  std::lock_guard lock(mutex_);
  if (!context_)
    context_ = std::make_unique<shared_context>(
        shared_context{make_ucx_context("tcp", options_.interface, ucx::rendezvous_scheme::put)});
  if (fabric_ && generation < generation_)
    throw_invalid("make_ucx_group", "generation " + std::to_string(generation_) + " or a later one",
                  std::to_string(generation));
  if (fabric_ && generation == generation_) return fabric_;
  auto made = std::make_shared<network_fabric>(context_->context.get(), options_.flush_timeout,
                                               options_.answer_timeout, engine_,
                                               posix::address_of_interface(options_.interface));
  generation_ = generation;
  ended = std::exchange(fabric_, made);
  return made;
}

}  // namespace troupe::collective
