#include "troupe/collective/ucx/ucx_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "troupe/collective/collective_error.hpp"
#include "troupe/transport/ucx_context.hpp"
#include "troupe/transport/ucx_library.hpp"

namespace troupe {
namespace {

constexpr unsigned message_id = 1;
/// So many messages to a peer may wait there unreceived.
constexpr int most_unconfirmed = 64;

std::string bytes_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

struct ucx_exchange::message final : network::transfer {
  ucx_exchange* at = nullptr;
  int peer = 0;
  message_header header;
  std::vector<std::byte> own_bytes;  ///< of a message that is no call's
  std::span<std::byte> place;        ///< where a received one goes
  bool is_counted = false;           ///< whether a call waits for it
  std::list<std::shared_ptr<message>>::iterator self;
  void set_done() { is_done_ = true; }
};

ucx_exchange::ucx_exchange(ucp_context_h context, const group_description& group, callbacks hooks)
    : group_(group),
      hooks_(std::move(hooks)),
      worker_(std::make_unique<ucx_worker>(context)),
      peers_(static_cast<std::size_t>(group.size())) {
  for (int i = 0; i < group.size(); ++i) {
    peers_[static_cast<std::size_t>(i)].at = this;
    peers_[static_cast<std::size_t>(i)].member = i;
  }
  worker_->handle_messages(message_id, on_message, this);
}

ucx_exchange::~ucx_exchange() {
  ucx_silence requests_in_flight_are_expected;
  close_connections();
  phase_ = phase::destroying;
  worker_.reset();
}

/// UCX 1.13 wants connections with error handling to be without requests when their worker is destroyed:
/// closing them by force cancels these.
void ucx_exchange::close_connections() {
  phase_ = phase::closing;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  std::vector<void*> closing;
  for (auto& each : peers_) {
    if (!each.endpoint) continue;
    auto* request = ucp_ep_close_nbx(std::exchange(each.endpoint, nullptr), &param);
    if (UCS_PTR_IS_PTR(request)) closing.push_back(request);
  }
  for (auto* request : closing) {
    while (ucp_request_check_status(request) == UCS_INPROGRESS) worker_->progress();
    ucp_request_free(request);
  }
}

void ucx_exchange::connect(std::uint64_t group_number, const std::vector<std::string>& addresses) {
  group_number_ = group_number;
  for (auto& to : peers_) {
    if (to.member == group_.member) continue;
    const auto& address = addresses[static_cast<std::size_t>(to.member)];
    auto params = endpoint_params(std::as_bytes(std::span(address)));
    params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler = {on_lost, &to};
    auto status = ucp_ep_create(worker_->get(), &params, &to.endpoint);
    if (status != UCS_OK) {
      to.endpoint = nullptr;
      lose(to, ucs_status_string(status));
    }
  }
  tell_all(message_kind::hello, {});
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
  for (const auto& from : peers_) {
    if (from.heard.sequence == sequence) {
      auto theirs = header(message_kind::note);
      theirs.from = from.member;
      theirs.signature = from.heard.signature;
      require_like(theirs, signature);
    }
    for (const auto& [key, early] : from.arrived)
      if (key.of == network::lane::collectives && key.sequence == sequence)
        require_like(early.header, signature);
  }
}

std::shared_ptr<ucx_exchange::message> ucx_exchange::start(peer& with, const message_header& header) {
  auto made = std::make_shared<message>();
  made->at = this;
  made->peer = with.member;
  made->header = header;
  made->self = in_flight_.insert(in_flight_.end(), made);
  return made;
}

void ucx_exchange::finish(message& done, ucs_status_t status) {
  auto& with = peers_[static_cast<std::size_t>(done.peer)];
  if (status == UCS_OK) {
    done.set_done();
    if (done.is_counted) --with.heard.num_awaited;
  } else {
    lose(with, ucs_status_string(status));
  }
  in_flight_.erase(done.self);  // may end it
}

std::shared_ptr<const network::transfer> ucx_exchange::post_send(int to, const network::message_key& key,
                                                                 const call_signature& signature,
                                                                 std::span<const std::byte> bytes) {
  auto made = header(message_kind::elements);
  made.sequence = key.sequence;
  made.step = key.step;
  made.lane = key.of;
  made.signature = signature;
  auto& peer = peers_[static_cast<std::size_t>(to)];
  auto sent = start(peer, made);
  sent->is_counted = true;
  ++peer.heard.num_awaited;
  send(peer, sent, bytes);
  return sent;
}

void ucx_exchange::post_note(int to, std::uint64_t sequence, const call_signature& signature) {
  auto made = header(message_kind::note);
  made.sequence = sequence;
  made.signature = signature;
  auto& peer = peers_[static_cast<std::size_t>(to)];
  send(peer, start(peer, made), {});
}

void ucx_exchange::tell_all(message_kind kind, std::span<const std::byte> text) {
  for (auto& to : peers_) {
    if (to.member == group_.member) continue;
    auto sent = start(to, header(kind));
    sent->own_bytes.assign(text.begin(), text.end());
    send(to, sent, sent->own_bytes);
  }
}

/// To a lost peer nothing goes: a call that needs it fails when that is looked at.
void ucx_exchange::send(peer& to, const std::shared_ptr<message>& sent, std::span<const std::byte> bytes) {
  if (!to.heard.lost_cause.empty()) {
    in_flight_.erase(sent->self);
    return;
  }
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = on_sent;
  param.user_data = sent.get();
  // By rendezvous, which ends when the receiver has it.
  if (sent->is_counted && ++to.num_unconfirmed >= most_unconfirmed && !bytes.empty()) {
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_RNDV;
    to.num_unconfirmed = 0;
  }
  auto* request = ucp_am_send_nbx(to.endpoint, message_id, &sent->header, sizeof sent->header, bytes.data(),
                                  bytes.size(), &param);
  if (!UCS_PTR_IS_PTR(request)) finish(*sent, UCS_PTR_STATUS(request));
}

void ucx_exchange::on_sent(void* request, ucs_status_t status, void* user_data) {
  auto& sent = *static_cast<message*>(user_data);
  if (sent.at->phase_ == phase::destroying) return;
  ucp_request_free(request);
  if (sent.at->phase_ == phase::running) sent.at->finish(sent, status);
}

std::shared_ptr<const network::transfer> ucx_exchange::post_receive(int from, const network::message_key& key,
                                                                    const call_signature& expected,
                                                                    std::span<std::byte> bytes) {
  auto wanted = header(message_kind::elements);
  wanted.sequence = key.sequence;
  wanted.step = key.step;
  wanted.lane = key.of;
  wanted.signature = expected;
  auto& peer = peers_[static_cast<std::size_t>(from)];
  auto received = start(peer, wanted);
  received->is_counted = true;
  received->place = bytes;
  ++peer.heard.num_awaited;
  if (auto early = peer.arrived.extract(key))
    deliver(*received, early.mapped().header, early.mapped().body(), early.mapped().descriptor);
  else
    peer.posted.emplace(key, received);
  return received;
}

/// A message of a call, to where it is wanted.
void ucx_exchange::deliver(message& into, const message_header& header, std::span<const std::byte> body,
                           void* descriptor) {
  require_like(header, into.header.signature);
  if (body.size() != into.place.size())
    throw collective_error(collective_failure::transport, group_.name, header.sequence, {},
                           "group " + group_.name + ": a message of " + std::to_string(body.size()) +
                               " bytes came where " + std::to_string(into.place.size()) +
                               " were expected: give all members the same network_options");
  if (!descriptor) {
    if (!body.empty()) std::memcpy(into.place.data(), body.data(), body.size());
    return finish(into, UCS_OK);
  }
  // What a lost peer announced cannot be fetched any more.
  if (!peers_[static_cast<std::size_t>(into.peer)].heard.lost_cause.empty()) return;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.recv_am = on_fetched;
  param.user_data = &into;
  auto* request =
      ucp_am_recv_data_nbx(worker_->get(), descriptor, into.place.data(), into.place.size(), &param);
  if (!UCS_PTR_IS_PTR(request)) finish(into, UCS_PTR_STATUS(request));
}

void ucx_exchange::on_fetched(void* request, ucs_status_t status, std::size_t, void* user_data) {
  auto& received = *static_cast<message*>(user_data);
  if (received.at->phase_ == phase::destroying) return;
  ucp_request_free(request);
  if (received.at->phase_ == phase::running) received.at->finish(received, status);
}

ucs_status_t ucx_exchange::on_message(void* self, const void* head, std::size_t head_bytes, void* body,
                                      std::size_t body_bytes, const ucp_am_recv_param_t* param) {
  auto& at = *static_cast<ucx_exchange*>(self);
  message_header header;
  if (at.phase_ != phase::running || head_bytes != sizeof header) return UCS_OK;
  std::memcpy(&header, head, sizeof header);
  if (header.group != at.group_number_ || header.from < 0 || header.from >= at.group_.size()) return UCS_OK;
  bool is_announced = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  try {
    return at.take(header, {is_announced ? nullptr : static_cast<const std::byte*>(body), body_bytes},
                   is_announced ? body : nullptr);
  } catch (...) {  // UCX knows no exceptions
    if (!at.failure_) at.failure_ = std::current_exception();
    return UCS_OK;
  }
}

ucs_status_t ucx_exchange::take(const message_header& header, std::span<const std::byte> body,
                                void* descriptor) {
  auto& from = peers_[static_cast<std::size_t>(header.from)];
  from.heard.has_come = true;
  if (header.lane == network::lane::collectives && header.sequence >= from.heard.sequence) {
    from.heard.sequence = header.sequence;
    from.heard.signature = header.signature;
  }
  bool is_of_call = header.kind == message_kind::elements || header.kind == message_kind::note;
  if (is_of_call && header.lane == network::lane::collectives)
    if (const auto* own = calls_.find(header.sequence)) require_like(header, *own);
  switch (header.kind) {
    case message_kind::elements:
      return take_elements(from, header, body, descriptor);
    case message_kind::question:
      if (hooks_.describe) {
        auto text = hooks_.describe();
        auto answer = start(from, this->header(message_kind::answer));
        answer->own_bytes.assign(std::as_bytes(std::span(text)).begin(),
                                 std::as_bytes(std::span(text)).end());
        send(from, answer, answer->own_bytes);
      }
      break;
    case message_kind::answer:
      from.heard.answer = bytes_text(body);
      break;
    case message_kind::giving_up:
      if (hooks_.on_giving_up) hooks_.on_giving_up(header.from, body);
      break;
    case message_kind::leaving:
      from.heard.has_left = true;
      break;
    case message_kind::hello:
    case message_kind::note:
      break;
  }
  return UCS_OK;
}

ucs_status_t ucx_exchange::take_elements(peer& from, const message_header& header,
                                         std::span<const std::byte> body, void* descriptor) {
  if (auto wanted = from.posted.extract(header.key())) {
    deliver(*wanted.mapped(), header, body, descriptor);
    return UCS_OK;
  }
  arrival early{header, {}, descriptor, body.size()};
  if (!descriptor) early.bytes.assign(body.begin(), body.end());
  from.arrived.insert_or_assign(header.key(), std::move(early));
  return descriptor ? UCS_INPROGRESS : UCS_OK;
}

void ucx_exchange::on_lost(void* of, ucp_ep_h, ucs_status_t status) {
  auto& lost = *static_cast<peer*>(of);
  if (lost.at->phase_ == phase::running) lost.at->lose(lost, ucs_status_string(status));
}

void ucx_exchange::lose(peer& of, const std::string& cause) {
  if (!of.heard.lost_cause.empty()) return;
  of.heard.lost_cause = cause;
  of.heard.lost_at = std::chrono::steady_clock::now();
}

void ucx_exchange::forget_answers() {
  for (auto& each : peers_) each.heard.answer.reset();
}

bool ucx_exchange::progress() {
  bool moved = worker_->progress();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return moved;
}

void ucx_exchange::flush(std::chrono::steady_clock::time_point deadline) {
  ucp_request_param_t param{};
  auto* request = ucp_worker_flush_nbx(worker_->get(), &param);
  if (!UCS_PTR_IS_PTR(request)) return;
  while (ucp_request_check_status(request) == UCS_INPROGRESS && std::chrono::steady_clock::now() < deadline)
    worker_->progress();
  if (ucp_request_check_status(request) != UCS_INPROGRESS) ucp_request_free(request);
}

void ucx_exchange::require_like(const message_header& theirs, const call_signature& own) const {
  bool is_alike = theirs.lane == network::lane::between_two
                      ? theirs.signature.type == own.type && theirs.signature.count == own.count
                      : theirs.signature == own;
  if (is_alike) return;
  auto own_rank = group_.ranks[static_cast<std::size_t>(group_.member)];
  auto other_rank = group_.ranks[static_cast<std::size_t>(theirs.from)];
  auto call = std::to_string(theirs.sequence) + " of group " + group_.name;
  throw collective_error(collective_failure::mismatch, group_.name, theirs.sequence,
                         {std::min(own_rank, other_rank), std::max(own_rank, other_rank)},
                         (theirs.lane == network::lane::between_two ? "message " : "call ") + call + " is " +
                             to_string(own) + " on rank " + std::to_string(own_rank) + " but " +
                             to_string(theirs.signature) + " on rank " + std::to_string(other_rank) +
                             ": all members must make the same calls in the same order");
}

}  // namespace troupe
