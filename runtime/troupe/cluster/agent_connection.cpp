#include "troupe/cluster/agent_connection.hpp"

#include <algorithm>

#include "troupe/cluster/tcp_socket.hpp"
#include "troupe/wire/codec.hpp"

namespace troupe {
namespace {

/// A member that reads nothing (it is stopped) may not make the agent's memory grow for ever.
constexpr std::size_t max_unsent_bytes = sealed_channel::max_from_agent + (8 << 20);
/// One call leaves the thread to others after so much.
constexpr std::size_t max_read_bytes = 1 << 18;

}  // namespace

agent_connection::agent_connection(unique_fd socket, std::span<const std::byte> secret, time_point now)
    : socket_(std::move(socket)), secret_(secret), opened_(now), nonce_(make_nonce()) {
  out_.resize(greeting_bytes);
  std::ranges::copy(nonce_, std::ranges::copy(handshake_magic, out_.begin()).out);
  write();
}

void agent_connection::finish() {
  finishing_ = true;
  write();
}

std::vector<agent_wire::client_message> agent_connection::read() {
  if (!wants_read()) return {};
  // A stranger's next bytes are not even read before its proof is checked.
  auto limit = authenticated() ? max_read_bytes : reply_bytes - in_.size();
  auto state = read_available(fd(), in_, limit);
  if (!authenticated()) read_reply();
  auto messages = authenticated() ? read_frames() : std::vector<agent_wire::client_message>();
  if (state == io_result::closed) peer_closed_ = true;
  return messages;
}

void agent_connection::read_reply() {
  if (in_.size() < reply_bytes) return;
  handshake_nonce theirs;
  std::copy_n(in_.begin(), theirs.size(), theirs.begin());
  handshake proofs(secret_, nonce_, theirs);
  bool known = proofs.verify(handshake_role::client,
                             std::span(in_).subspan<sizeof(handshake_nonce), sizeof(handshake_proof)>());
  in_.clear();
  out_.push_back(known ? verdict_accepted : verdict_refused);
  auto proof = known ? proofs.proof_of(handshake_role::agent) : handshake_proof{};
  out_.insert(out_.end(), proof.begin(), proof.end());
  if (known)
    channel_.emplace(handshake_role::agent, proofs);
  else
    finishing_ = true;
  write();
}

std::vector<agent_wire::client_message> agent_connection::read_frames() {
  std::vector<agent_wire::client_message> messages;
  try {
    while (auto body = channel_->open(in_)) messages.push_back(decode<agent_wire::client_message>(*body));
  } catch (const bad_frame&) {
    closed_ = true;
  } catch (const decode_error&) {
    closed_ = true;
  }
  return messages;
}

void agent_connection::send(const agent_wire::agent_message& message) {
  if (closed() || finishing_ || unwritable_ || !channel_) return;
  channel_->seal(encode(message), out_);
  write();
}

void agent_connection::write() {
  if (closed_) return;
  // What a peer said before it went away is still to be read.
  if (write_available(fd(), out_) == io_result::closed) unwritable_ = true;
  if (unwritable_) out_.clear();
  if (out_.size() > max_unsent_bytes || (finishing_ && out_.empty())) closed_ = true;
}

}  // namespace troupe
