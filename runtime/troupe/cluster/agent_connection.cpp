#include "troupe/cluster/agent_connection.hpp"

#include <algorithm>

#include "troupe/messaging/tcp_socket.hpp"
#include "troupe/wire/codec.hpp"

namespace troupe::cluster {
namespace {

/// Limit of pending output to a member that does not read (it may be suspended).
constexpr std::size_t max_unsent_bytes = messaging::sealed_channel::max_from_agent + (8 << 20);
/// Limit of bytes read in one call, so that other connections are served.
constexpr std::size_t max_read_bytes = 1 << 18;

}  // namespace

agent_connection::agent_connection(posix::unique_fd socket, std::span<const std::byte> secret, time_point now)
    : socket_(std::move(socket)), opened_(now), responder_(secret, messaging::agent_protocol) {
  auto greeting = responder_.greeting();
  out_.assign(greeting.begin(), greeting.end());
  write();
}

void agent_connection::finish() {
  finishing_ = true;
  write();
}

std::vector<agent_wire::client_message> agent_connection::read() {
  if (!wants_read()) return {};
  // Of a peer that is not authenticated only the bytes of its proof are read.
  auto limit = authenticated() ? max_read_bytes : messaging::reply_bytes - received_.size();
  auto state = messaging::read_available(fd(), received_, limit);
  if (!authenticated()) read_reply();
  auto messages = authenticated() ? read_frames() : std::vector<agent_wire::client_message>();
  if (state == messaging::io_result::closed) peer_closed_ = true;
  return messages;
}

void agent_connection::read_reply() {
  if (received_.size() < messaging::reply_bytes) return;
  auto keys = responder_.check(std::span(received_).first<messaging::reply_bytes>());
  received_.clear();
  auto verdict = messaging::handshake_responder::verdict(keys);
  out_.insert(out_.end(), verdict.begin(), verdict.end());
  if (keys)
    channel_.emplace(messaging::handshake_role::responder, *keys);
  else
    finishing_ = true;
  write();
}

std::vector<agent_wire::client_message> agent_connection::read_frames() {
  std::vector<agent_wire::client_message> messages;
  try {
    while (auto body = channel_->open(received_))
      messages.push_back(wire::decode<agent_wire::client_message>(*body));
  } catch (const messaging::bad_frame&) {
    closed_ = true;
  } catch (const wire::decode_error&) {
    closed_ = true;
  }
  return messages;
}

void agent_connection::send(const agent_wire::agent_message& message) {
  if (closed() || finishing_ || unwritable_ || !channel_) return;
  channel_->seal(wire::encode(message), out_);
  write();
}

void agent_connection::write() {
  if (closed_) return;
  // Messages that the peer sent before it closed are still to be read.
  if (messaging::write_available(fd(), out_) == messaging::io_result::closed) unwritable_ = true;
  if (unwritable_) out_.clear();
  if (out_.size() > max_unsent_bytes || (finishing_ && out_.empty())) closed_ = true;
}

}  // namespace troupe::cluster
