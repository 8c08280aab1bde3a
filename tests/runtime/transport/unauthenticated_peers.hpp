#pragma once
#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <optional>
#include <random>
#include <string>

#include "troupe/messaging/control_address.hpp"
#include "troupe/messaging/frame.hpp"
#include "troupe/messaging/handshake.hpp"
#include "troupe/ucx/ucx_context.hpp"
#include "troupe/ucx/ucx_worker.hpp"
#include "ucx_process.hpp"

namespace troupe::testing {

inline const std::vector<std::byte> greeting = {std::byte{'h'}, std::byte{'i'}};

/// Connects two ranks; returns when the connections are made. Returns this process's id.
inline messaging::process_id meet(ucx_process& process, int rank) {
  auto own = messaging::decode_control_address(process.begin(1).control).process;
  process.connect(1, {0, 1});
  process.link().send_control(1 - rank, 1, greeting);
  process.events.take_controls();
  return own;
}

/// A program outside the job that connects to the data worker by plain UCX.
class unauthenticated_sender {
 public:
  explicit unauthenticated_sender(const transport::process_address& address,
                                  const std::string& transports = "sysv,cma")
      : context_(ucx::make_ucx_context(transports, "lo")), worker_(context_.get()) {
    auto params = ucx::endpoint_params(worker_address_in(address));
    ucx::check_ucx(ucp_ep_create(worker_.get(), &params, &endpoint_), "connect an unauthenticated peer");
  }

  void send(std::span<const std::byte> head, std::span<const std::byte> body, std::uint32_t flags) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = flags;
    auto* request = ucp_am_send_nbx(endpoint_, 1, head.data(), head.size(), body.data(), body.size(), &param);
    while (UCS_PTR_IS_PTR(request) && ucp_request_check_status(request) == UCS_INPROGRESS) worker_.progress();
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
  }

  /// Bytes that are no frames, in every way they can be sent.
  void send_garbage(int count) {
    std::mt19937_64 random(2);
    for (int i = 0; i < count; ++i) {
      auto head = pattern(random() % 300, random());
      auto body = pattern(random() % 30000, random());
      std::uint32_t flags[] = {0, UCP_AM_SEND_FLAG_REPLY, UCP_AM_SEND_FLAG_RNDV, UCP_AM_SEND_FLAG_EAGER};
      send(head.bytes(), body.bytes(), flags[random() % 4]);
    }
  }

 private:
  ucx::ucx_context context_;
  ucx::ucx_worker worker_;
  ucp_ep_h endpoint_ = nullptr;
};

/// A program outside the job that connects to the control port.
class unauthenticated_peer {
 public:
  explicit unauthenticated_peer(const transport::process_address& address)
      : peer_(messaging::decode_control_address(address.control)), socket_(connect_to(peer_)) {
    ::fcntl(socket_.get(), F_SETFL, 0);  // from here on it may wait
  }
  void send(std::span<const std::byte> bytes) {
    ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    sent_.insert(sent_.end(), bytes.begin(), bytes.end());
  }
  /// All bytes that went out so far.
  const std::vector<std::byte>& sent() const { return sent_; }
  void wait_until_closed() {
    std::byte byte;
    while (::recv(socket_.get(), &byte, 1, 0) > 0) {
    }
  }
  /// Proves that it knows the secret.
  void shake_hands() {
    std::array<std::byte, messaging::greeting_bytes> greeting;
    ::recv(socket_.get(), greeting.data(), greeting.size(), MSG_WAITALL);
    auto nonce = messaging::make_nonce();
    auto secret = test_secret();
    auto keys = answer_greeting(greeting, secret, messaging::control_protocol, nonce);
    send(reply_of(keys, nonce));
    std::array<std::byte, messaging::verdict_bytes> verdict{};
    ::recv(socket_.get(), verdict.data(), verdict.size(), MSG_WAITALL);
    expect(verdict[0] == messaging::verdict_accepted, "the secret is known");
    key_.emplace(keys.key_of(messaging::handshake_role::initiator));
  }
  /// A control frame of rank 1 for rank 0, sealed with the connection's key.
  void send_frame(std::uint64_t sequence, std::span<const std::byte> extension, std::uint32_t to_rank = 0) {
    messaging::frame_header header{messaging::frame_kind::control, 1, to_rank, 1, sequence, greeting.size()};
    auto body = std::span(greeting).first(sequence == 0 ? 0 : greeting.size());
    header.body_bytes = body.size();
    send(seal_frame(*key_, header, extension, body));
    send(body);
  }
  /// What a connection of process `from` begins with.
  std::vector<std::byte> introduction(const messaging::process_id& from) const {
    std::vector<std::byte> bytes(peer_.process.begin(), peer_.process.end());
    bytes.insert(bytes.end(), from.begin(), from.end());
    return bytes;
  }

 private:
  messaging::control_address peer_;
  posix::unique_fd socket_;
  std::vector<std::byte> sent_;
  std::optional<messaging::frame_authenticator> key_;
};

inline transport::process_address address_posted(test_rank& self, int process, std::uint64_t generation) {
  auto [control, data] = wire::decode<std::pair<std::vector<std::byte>, std::vector<std::byte>>>(
      self.wait_for(process, 1000 + static_cast<int>(generation)));
  return {control, data};
}

}  // namespace troupe::testing
