#include "troupe/collective/libraries/gloo/gloo_mesh.hpp"

#include <gloo/common/error.h>
#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>

#include <algorithm>
#include <future>
#include <utility>

#include "troupe/collective/calls/collective_error.hpp"

namespace troupe::collective {

namespace {

using ::gloo::transport::UnboundBuffer;

// gloo's collectives use slots of which the highest byte is not 0, and messages another one.
constexpr std::uint64_t unused_slot = 2;
// Time-outs are decided by operation_queue.
constexpr auto no_timeout = std::chrono::hours(24 * 365);

}  // namespace

class closable_context::buffer final : public UnboundBuffer {
 public:
  buffer(closable_context& context, void* bytes, std::size_t size)
      : UnboundBuffer(bytes, size),
        context_(context),
        inner_(context.connections_->createUnboundBuffer(bytes, size)) {
    std::lock_guard lock(context_.mutex_);
    context_.buffers_.insert(this);
  }
  ~buffer() override {
    std::lock_guard lock(context_.mutex_);
    context_.buffers_.erase(this);
  }

  bool waitRecv(int* member, std::chrono::milliseconds) override {
    context_.require_open();
    return inner_->waitRecv(member, no_timeout) || throw_broken();
  }
  bool waitSend(int* member, std::chrono::milliseconds) override {
    context_.require_open();
    return inner_->waitSend(member, no_timeout) || throw_broken();
  }
  void abortWaitRecv() override { inner_->abortWaitRecv(); }
  void abortWaitSend() override { inner_->abortWaitSend(); }

  void send(int member, std::uint64_t slot, std::size_t offset, std::size_t size_bytes) override {
    inner_->send(member, slot, offset, size_bytes);
  }
  void recv(int member, std::uint64_t slot, std::size_t offset, std::size_t size_bytes) override {
    inner_->recv(member, slot, offset, size_bytes);
  }
  void recv(std::vector<int> members, std::uint64_t slot, std::size_t offset,
            std::size_t size_bytes) override {
    inner_->recv(std::move(members), slot, offset, size_bytes);
  }

  [[noreturn]] static bool throw_broken() { throw ::gloo::IoException("the connections were broken off"); }

 private:
  closable_context& context_;
  std::unique_ptr<UnboundBuffer> inner_;
};

closable_context::closable_context(std::shared_ptr<::gloo::transport::Context> connections)
    : Context(connections->rank, connections->size), connections_(std::move(connections)) {}

std::unique_ptr<::gloo::transport::Pair>& closable_context::getPair(int member) {
  return connections_->getPair(member);
}

std::unique_ptr<::gloo::transport::Pair>& closable_context::createPair(int member) {
  return connections_->createPair(member);
}

std::unique_ptr<UnboundBuffer> closable_context::createUnboundBuffer(void* bytes, std::size_t size) {
  require_open();
  return std::make_unique<buffer>(*this, bytes, size);
}

void closable_context::require_open() {
  std::lock_guard lock(mutex_);
  if (is_closed_) buffer::throw_broken();
}

/// A wait has either begun before, and is aborted now, or sees that the connections are closed.
void closable_context::close() noexcept {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(is_closed_, true)) return;
  }
  close_connections();
  std::lock_guard lock(mutex_);
  for (auto* each : buffers_) {
    each->abortWaitRecv();
    each->abortWaitSend();
  }
}

/// gloo closes all connections of a context when a wait times out. A wait for a member that has closed its
/// connections fails at once and closes nothing. So this waits for each member.
void closable_context::close_connections() noexcept {
  for (int member = 0; member < size; ++member) {
    if (member == rank) continue;
    try {
      std::byte nothing{};
      auto never = connections_->createUnboundBuffer(&nothing, 1);
      never->recv(member, unused_slot);
      never->waitRecv(std::chrono::milliseconds(1));
    } catch (const ::gloo::Exception&) {
      // the intended time-out
    }
  }
}

gloo_mesh::gloo_mesh(const group_description& group, store& keys,
                     std::shared_ptr<::gloo::transport::Device> device, std::chrono::milliseconds timeout)
    : Context(group.member, group.size()), group_(group) {
  auto until = std::chrono::steady_clock::now() + timeout;
  device_ = std::move(device);
  auto connections = device_->createContext(rank, size);
  connections->setTimeout(timeout);  // of connecting
  connections_ = std::make_shared<closable_context>(std::move(connections));
  transportContext_ = connections_;
  keys.put(key_of(rank), listen());
  for (int member = 0; member < size; ++member)
    if (member != rank) connect(member, wait_for(member, keys, until), keys);
}

gloo_mesh::addresses gloo_mesh::listen() {
  addresses all;
  for (int member = 0; member < size; ++member) {
    if (member == rank) continue;
    auto own = transportContext_->createPair(member)->address().bytes();
    auto bytes = std::as_bytes(std::span(own));
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

gloo_mesh::addresses gloo_mesh::wait_for(int member, store& keys, deadline until) const {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  if (auto found = keys.get(key_of(member), std::max(left, std::chrono::milliseconds(0)))) return *found;
  throw collective_error(collective_failure::timed_out, group_.name, 0, {rank_of(member)},
                         "group " + group_.name + " cannot begin over gloo: nothing came from rank " +
                             to_string(rank_of(member)));
}

std::vector<char> gloo_mesh::address_for_me(int member, const addresses& of_all) const {
  auto length = static_cast<std::ptrdiff_t>(of_all.size()) / (size - 1);
  const auto* first =
      reinterpret_cast<const char*>(of_all.data()) + length * (rank > member ? rank - 1 : rank);
  return {first, first + length};
}

/// gloo waits until the other member has connected or the time is over. It does not notice when that member
/// is lost; then closing the pair ends the wait.
void gloo_mesh::connect(int member, const addresses& of_all, store& keys) {
  constexpr auto interval = std::chrono::milliseconds(100);
  auto& pair = *transportContext_->getPair(member);
  auto connecting = std::async(std::launch::async,
                               [&pair, address = address_for_me(member, of_all)] { pair.connect(address); });
  try {
    while (connecting.wait_for(interval) != std::future_status::ready) keys.check();
    connecting.get();
  } catch (const ::gloo::Exception& failure) {
    throw collective_error(collective_failure::transport, group_.name, 0, {rank_of(member)},
                           "group " + group_.name + " cannot begin over gloo: no connection to rank " +
                               to_string(rank_of(member)) + ": " + failure.what());
  } catch (...) {
    pair.close();
    throw;
  }
}

std::string gloo_mesh::key_of(int member) const {
  return "gloo/" + group_.key() + "/of/" + std::to_string(member);
}

}  // namespace troupe::collective
