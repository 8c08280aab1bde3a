#include "troupe/collective/net/ucx_exchange.hpp"

#include <cstring>
#include <utility>

namespace troupe {

ucx_exchange::ucx_exchange(ucp_context_h context, const group_description& group, callbacks hooks)
    : group_(group),
      hooks_(std::move(hooks)),
      peers_(static_cast<std::size_t>(group.size())),
      connections_(context, group.size(), *this) {}

void ucx_exchange::connect(std::uint64_t group_number, const std::vector<std::string>& addresses) {
  group_number_ = group_number;
  for (int i = 0; i < group_.size(); ++i)
    if (i != group_.member)
      connections_.connect(i, std::as_bytes(std::span(addresses[static_cast<std::size_t>(i)])));
  send_to_all(net::message_kind::hello);
}

net::message_header ucx_exchange::header(net::message_kind kind) const {
  net::message_header made;
  made.group = group_number_;
  made.kind = kind;
  made.from = group_.member;
  made.sequence = calls_.newest();
  if (const auto* newest = calls_.find(made.sequence)) made.signature = *newest;
  return made;
}

// Compares the call with messages that have arrived before it.
void ucx_exchange::begin_call(std::uint64_t sequence, const call_signature& signature) {
  calls_.add(sequence, signature);
  for (int i = 0; i < group_.size(); ++i) {
    const auto& from = peers_[static_cast<std::size_t>(i)];
    if (from.status.sequence == sequence) {
      auto theirs = header(net::message_kind::call_notice);
      theirs.from = i;
      theirs.signature = from.status.signature;
      require_same_call(theirs, signature);
    }
    for (const auto& [key, early] : from.early)
      if (key.of == net::channel::collectives && key.sequence == sequence)
        require_same_call(early.header, signature);
  }
}

std::shared_ptr<ucx_exchange::message> ucx_exchange::message_of_call(int peer, const net::message_key& key,
                                                                     const call_signature& signature) {
  auto made = std::make_shared<message>();
  made->peer = peer;
  made->header = header(net::message_kind::elements);
  made->header.sequence = key.sequence;
  made->header.step = key.step;
  made->header.channel = key.of;
  made->header.signature = signature;
  made->is_of_call = true;
  ++peers_[static_cast<std::size_t>(peer)].status.num_pending;
  return made;
}

void ucx_exchange::on_done(ucx_message& done) {
  done.set_done();
  if (done.is_of_call) --peers_[static_cast<std::size_t>(done.peer)].status.num_pending;
}

std::shared_ptr<const net::transfer> ucx_exchange::post_send(int to, const net::message_key& key,
                                                             const call_signature& signature,
                                                             std::span<const std::byte> bytes) {
  auto sent = message_of_call(to, key, signature);
  connections_.send(sent, bytes);
  return sent;
}

std::shared_ptr<const net::transfer> ucx_exchange::post_receive(int from, const net::message_key& key,
                                                                const call_signature& expected,
                                                                std::span<std::byte> bytes) {
  auto received = message_of_call(from, key, expected);
  received->place = bytes;
  auto& peer = peers_[static_cast<std::size_t>(from)];
  if (auto early = peer.early.extract(key))
    deliver(received, early.mapped().header, early.mapped().body(), early.mapped().descriptor);
  else
    peer.posted.emplace(key, received);
  return received;
}

void ucx_exchange::post_call_notice(int to, std::uint64_t sequence, const call_signature& signature) {
  auto notice = std::make_shared<message>();
  notice->peer = to;
  notice->header = header(net::message_kind::call_notice);
  notice->header.sequence = sequence;
  notice->header.signature = signature;
  connections_.send(notice, {});
}

void ucx_exchange::send_control(int member, net::message_kind kind, const std::string& text) {
  auto sent = std::make_shared<message>();
  sent->peer = member;
  sent->header = header(kind);
  auto bytes = std::as_bytes(std::span(text));
  sent->own_bytes.assign(bytes.begin(), bytes.end());
  connections_.send(sent, sent->own_bytes);
}

void ucx_exchange::send_to_all(net::message_kind kind, const std::string& text) {
  for (int i = 0; i < group_.size(); ++i)
    if (i != group_.member) send_control(i, kind, text);
}

void ucx_exchange::clear_reports() {
  for (auto& each : peers_) each.status.report.reset();
}

bool ucx_exchange::on_message(const net::message_header& header, std::span<const std::byte> body,
                              void* descriptor) {
  if (header.group != group_number_ || header.from < 0 || header.from >= group_.size()) return false;
  auto& from = peers_[static_cast<std::size_t>(header.from)];
  record_call(from, header);
  switch (header.kind) {
    case net::message_kind::elements:
      return accept_elements(from, header, body, descriptor);
    case net::message_kind::report_request:
      if (hooks_.describe) send_control(header.from, net::message_kind::report, encode(hooks_.describe()));
      break;
    case net::message_kind::report:
      from.status.report = decode_failure_report(body);
      break;
    case net::message_kind::failure:
      from.status.has_aborted = true;
      if (hooks_.on_failure) hooks_.on_failure(header.from, decode_failure_report(body));
      break;
    case net::message_kind::leaving:
      from.status.has_left = true;
      break;
    case net::message_kind::hello:
    case net::message_kind::call_notice:
      break;
  }
  return false;
}

/// Every message says which collective call its sender made last.
void ucx_exchange::record_call(peer& of, const net::message_header& header) {
  of.status.is_connected = true;
  if (header.channel != net::channel::collectives) return;
  if (header.sequence >= of.status.sequence) {
    of.status.sequence = header.sequence;
    of.status.signature = header.signature;
  }
  if (header.kind != net::message_kind::elements && header.kind != net::message_kind::call_notice) return;
  if (const auto* own = calls_.find(header.sequence)) require_same_call(header, *own);
}

bool ucx_exchange::accept_elements(peer& from, const net::message_header& header,
                                   std::span<const std::byte> body, void* descriptor) {
  if (auto wanted = from.posted.extract(header.key())) {
    deliver(wanted.mapped(), header, body, descriptor);
    return false;
  }
  early_message early{header, {}, descriptor, body.size()};
  if (!descriptor) early.bytes.assign(body.begin(), body.end());
  from.early.insert_or_assign(header.key(), std::move(early));
  return true;
}

/// Copies or fetches a message of a call to where its receive wants it.
void ucx_exchange::deliver(const std::shared_ptr<message>& into, const net::message_header& header,
                           std::span<const std::byte> body, void* descriptor) {
  require_same_call(header, into->header.signature);
  if (body.size() != into->place.size())
    throw collective_error(collective_failure::transport, group_.name, header.sequence, {},
                           "group " + group_.name + ": a message of " + std::to_string(body.size()) +
                               " bytes came where " + std::to_string(into->place.size()) +
                               " were expected: give all members the same network_options");
  if (descriptor) return connections_.fetch(into, descriptor);
  if (!body.empty()) std::memcpy(into->place.data(), body.data(), body.size());
  on_done(*into);
}

void ucx_exchange::on_lost(int member, const std::string& cause) {
  auto& status = peers_[static_cast<std::size_t>(member)].status;
  status.lost_cause = cause;
  status.lost_at = std::chrono::steady_clock::now();
}

void ucx_exchange::require_same_call(const net::message_header& theirs, const call_signature& own) const {
  if (theirs.channel == net::channel::collectives) {
    if (theirs.signature != own)
      throw failure_diagnosis(group_).mismatch({own, theirs.sequence}, theirs.from, theirs.signature);
  } else if (theirs.signature.type != own.type || theirs.signature.count != own.count) {
    throw failure_diagnosis(group_).wrong_message({own, theirs.sequence}, theirs.from, theirs.signature);
  }
}

}  // namespace troupe
