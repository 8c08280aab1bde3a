#include "troupe/collective/gloo/breakable_context.hpp"

#include <gloo/common/error.h>

#include <utility>

namespace troupe {
namespace {

using ::gloo::transport::UnboundBuffer;

// gloo's collectives use slots of which the highest byte is not 0, and messages another one.
constexpr std::uint64_t unused_slot = 2;
// The queue above decides what comes too late.
constexpr auto no_timeout = std::chrono::hours(24 * 365);

}  // namespace

class breakable_context::buffer final : public UnboundBuffer {
 public:
  buffer(breakable_context& of, void* bytes, std::size_t size)
      : UnboundBuffer(bytes, size), of_(of), inner_(of.connections_->createUnboundBuffer(bytes, size)) {
    std::lock_guard lock(of_.mutex_);
    of_.buffers_.insert(this);
  }
  ~buffer() override {
    std::lock_guard lock(of_.mutex_);
    of_.buffers_.erase(this);
  }

  bool waitRecv(int* member, std::chrono::milliseconds) override {
    of_.require_whole();
    return inner_->waitRecv(member, no_timeout) || throw_broken();
  }
  bool waitSend(int* member, std::chrono::milliseconds) override {
    of_.require_whole();
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
  breakable_context& of_;
  std::unique_ptr<UnboundBuffer> inner_;
};

breakable_context::breakable_context(std::shared_ptr<::gloo::transport::Context> connections)
    : Context(connections->rank, connections->size), connections_(std::move(connections)) {}

std::unique_ptr<::gloo::transport::Pair>& breakable_context::getPair(int member) {
  return connections_->getPair(member);
}

std::unique_ptr<::gloo::transport::Pair>& breakable_context::createPair(int member) {
  return connections_->createPair(member);
}

std::unique_ptr<UnboundBuffer> breakable_context::createUnboundBuffer(void* bytes, std::size_t size) {
  require_whole();
  return std::make_unique<buffer>(*this, bytes, size);
}

void breakable_context::require_whole() {
  std::lock_guard lock(mutex_);
  if (is_broken_) buffer::throw_broken();
}

/// Whoever waits has done so before and is woken now, or sees that connections are broken.
void breakable_context::break_off() noexcept {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(is_broken_, true)) return;
  }
  close_connections();
  std::lock_guard lock(mutex_);
  for (auto* each : buffers_) {
    each->abortWaitRecv();
    each->abortWaitSend();
  }
}

/// gloo closes all connections of a context when one wait comes too late. A wait for a member that broke off
/// earlier fails at once and closes nothing, so each member is waited for.
void breakable_context::close_connections() noexcept {
  for (int member = 0; member < size; ++member) {
    if (member == rank) continue;
    try {
      std::byte nothing{};
      auto never = connections_->createUnboundBuffer(&nothing, 1);
      never->recv(member, unused_slot);
      never->waitRecv(std::chrono::milliseconds(1));
    } catch (const ::gloo::Exception&) {
      // as wanted
    }
  }
}

}  // namespace troupe
