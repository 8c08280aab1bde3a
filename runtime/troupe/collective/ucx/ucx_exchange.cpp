#include "troupe/collective/ucx/ucx_exchange.hpp"

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
  tell_all(message_kind::hello);
}

message_header ucx_exchange::header(message_kind kind) const {
  message_header made;
  made.group = group_number_;
  made.kind = kind;
  made.from = group_.member;
  made.sequence = calls_.newest();
  if (const auto* newest = calls_.find(made.sequence)) made.signature = *newest;
  return made;
}

// Messages that came before this member's call.
void ucx_exchange::begin_call(std::uint64_t sequence, const call_signature& signature) {
  calls_.add(sequence, signature);
  for (int i = 0; i < group_.size(); ++i) {
    const auto& from = peers_[static_cast<std::size_t>(i)];
    if (from.heard.sequence == sequence) {
      auto theirs = header(message_kind::note);
      theirs.from = i;
      theirs.signature = from.heard.signature;
      require_like(theirs, signature);
    }
    for (const auto& [key, early] : from.arrived)
      if (key.of == network::lane::collectives && key.sequence == sequence)
        require_like(early.header, signature);
  }
}

std::shared_ptr<ucx_exchange::message> ucx_exchange::message_of_call(int peer,
                                                                     const network::message_key& key,
                                                                     const call_signature& signature) {
  auto made = std::make_shared<message>();
  made->peer = peer;
  made->header = header(message_kind::elements);
  made->header.sequence = key.sequence;
  made->header.step = key.step;
  made->header.lane = key.of;
  made->header.signature = signature;
  made->is_of_call = true;
  ++peers_[static_cast<std::size_t>(peer)].heard.num_awaited;
  return made;
}

void ucx_exchange::on_done(ucx_message& done) {
  done.set_done();
  if (done.is_of_call) --peers_[static_cast<std::size_t>(done.peer)].heard.num_awaited;
}

std::shared_ptr<const network::transfer> ucx_exchange::post_send(int to, const network::message_key& key,
                                                                 const call_signature& signature,
                                                                 std::span<const std::byte> bytes) {
  auto sent = message_of_call(to, key, signature);
  connections_.send(sent, bytes);
  return sent;
}

std::shared_ptr<const network::transfer> ucx_exchange::post_receive(int from, const network::message_key& key,
                                                                    const call_signature& expected,
                                                                    std::span<std::byte> bytes) {
  auto received = message_of_call(from, key, expected);
  received->place = bytes;
  auto& peer = peers_[static_cast<std::size_t>(from)];
  if (auto early = peer.arrived.extract(key))
    deliver(received, early.mapped().header, early.mapped().body(), early.mapped().descriptor);
  else
    peer.posted.emplace(key, received);
  return received;
}

void ucx_exchange::post_note(int to, std::uint64_t sequence, const call_signature& signature) {
  auto note = std::make_shared<message>();
  note->peer = to;
  note->header = header(message_kind::note);
  note->header.sequence = sequence;
  note->header.signature = signature;
  connections_.send(note, {});
}

void ucx_exchange::tell(int member, message_kind kind, const std::string& text) {
  auto told = std::make_shared<message>();
  told->peer = member;
  told->header = header(kind);
  auto bytes = std::as_bytes(std::span(text));
  told->own_bytes.assign(bytes.begin(), bytes.end());
  connections_.send(told, told->own_bytes);
}

void ucx_exchange::tell_all(message_kind kind, const std::string& text) {
  for (int i = 0; i < group_.size(); ++i)
    if (i != group_.member) tell(i, kind, text);
}

void ucx_exchange::forget_answers() {
  for (auto& each : peers_) each.heard.answer.reset();
}

bool ucx_exchange::on_message(const message_header& header, std::span<const std::byte> body,
                              void* descriptor) {
  if (header.group != group_number_ || header.from < 0 || header.from >= group_.size()) return false;
  auto& from = peers_[static_cast<std::size_t>(header.from)];
  note_call(from, header);
  switch (header.kind) {
    case message_kind::elements:
      return take_elements(from, header, body, descriptor);
    case message_kind::question:
      if (hooks_.describe) tell(header.from, message_kind::answer, encoded(hooks_.describe()));
      break;
    case message_kind::answer:
      from.heard.answer = decoded_words(body);
      break;
    case message_kind::giving_up:
      if (hooks_.on_giving_up) hooks_.on_giving_up(header.from, decoded_words(body));
      break;
    case message_kind::leaving:
      from.heard.has_left = true;
      break;
    case message_kind::hello:
    case message_kind::note:
      break;
  }
  return false;
}

/// What a message tells of its sender's calls, whatever else it is for.
void ucx_exchange::note_call(peer& of, const message_header& header) {
  of.heard.has_come = true;
  if (header.lane != network::lane::collectives) return;
  if (header.sequence >= of.heard.sequence) {
    of.heard.sequence = header.sequence;
    of.heard.signature = header.signature;
  }
  if (header.kind != message_kind::elements && header.kind != message_kind::note) return;
  if (const auto* own = calls_.find(header.sequence)) require_like(header, *own);
}

bool ucx_exchange::take_elements(peer& from, const message_header& header, std::span<const std::byte> body,
                                 void* descriptor) {
  if (auto wanted = from.posted.extract(header.key())) {
    deliver(wanted.mapped(), header, body, descriptor);
    return false;
  }
  arrival early{header, {}, descriptor, body.size()};
  if (!descriptor) early.bytes.assign(body.begin(), body.end());
  from.arrived.insert_or_assign(header.key(), std::move(early));
  return true;
}

/// A message of a call, to where it is wanted.
void ucx_exchange::deliver(const std::shared_ptr<message>& into, const message_header& header,
                           std::span<const std::byte> body, void* descriptor) {
  require_like(header, into->header.signature);
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
  auto& heard = peers_[static_cast<std::size_t>(member)].heard;
  heard.lost_cause = cause;
  heard.lost_at = std::chrono::steady_clock::now();
}

void ucx_exchange::require_like(const message_header& theirs, const call_signature& own) const {
  if (theirs.lane == network::lane::collectives) {
    if (theirs.signature != own)
      throw post_mortem(group_).mismatch({own, theirs.sequence}, theirs.from, theirs.signature);
  } else if (theirs.signature.type != own.type || theirs.signature.count != own.count) {
    throw post_mortem(group_).wrong_message({own, theirs.sequence}, theirs.from, theirs.signature);
  }
}

}  // namespace troupe
