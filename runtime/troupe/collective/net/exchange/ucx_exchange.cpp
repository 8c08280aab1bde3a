#include "troupe/collective/net/exchange/ucx_exchange.hpp"

#include <utility>

#include "troupe/collective/diagnostics/failure_diagnosis.hpp"

namespace troupe::collective {
ucx_exchange::ucx_exchange(std::shared_ptr<network_fabric> over, const group_description& group,
                           const std::vector<int>& connections, callbacks hooks)
    : fabric_(std::move(over)),
      group_(group),
      number_(network_fabric::number_of(group)),
      hooks_(std::move(hooks)),
      calls_(group),
      peers_(*fabric_, group_, calls_),
      transfers_(*fabric_, *this, group_, calls_, peers_.all()) {
  std::lock_guard lock(fabric_->mutex());
  num_ends_ = fabric_->connections().num_ends();
  for (int i = 0; i < group_.size(); ++i) {
    if (i == group_.member) continue;
    set_connection(i, connections[static_cast<std::size_t>(i)]);
  }
  fabric_->add(number_, *this);
  send_control_to_all(net::message_kind::hello, {});
}

ucx_exchange::~ucx_exchange() {
  if (!has_left_) leave(net::message_kind::leaving, {});
}

void ucx_exchange::reconnect(int member, int connection) {
  std::lock_guard lock(fabric_->mutex());
  if (peers_[member].connection == connection && peers_[member].status.lost_cause.empty()) return;
  set_connection(member, connection);
  send_control(member, header(net::message_kind::hello), {});
}

void ucx_exchange::set_connection(int member, int connection) {
  peers_.set_connection(member, connection);
  if (fabric_->connections().is_lost(connection)) on_lost(connection, "it cannot be reached");
}

std::vector<int> ucx_exchange::members_to_reconnect() const {
  std::lock_guard lock(fabric_->mutex());
  return peers_.to_reconnect();
}

void ucx_exchange::abort(const failure_report& why) {
  if (!has_left_) leave(net::message_kind::failure, encode(why));
}

void ucx_exchange::leave(net::message_kind kind, const std::string& text) {
  {
    std::lock_guard lock(fabric_->mutex());
    has_left_ = true;
    send_control_to_all(kind, text);
    transfers_.stop();
    for (int i = 0; i < group_.size(); ++i)
      if (i != group_.member && !peers_[i].is_present()) transfers_.release(i);
    fabric_->remove(number_, peers_.take_present(), kind == net::message_kind::failure);
  }
  fabric_->finish_transfers(*this);
}

/// As if another member had aborted the group, but that the others are told.
void ucx_exchange::on_ending(const std::vector<world_rank>& silent, const std::string& cause) {
  if (has_left_ || received_failure_ || failure_) return;
  auto sequence = calls_.newest().first;
  collective_error why(collective_failure::lost_member, group_.name, sequence, silent,
                       "group " + group_.name + " has failed: " + cause + ", so rank " +
                           to_string(group_.rank_of(group_.member)) +
                           " ends all its connections. Make a new group");
  received_failure_ = with_failure({.sequence = sequence}, why);
  failure_ = std::make_exception_ptr(why);
  has_events_.store(true, std::memory_order_release);
  send_control_to_all(net::message_kind::failure, encode(*received_failure_));
  transfers_.stop();
}

net::message_header ucx_exchange::header(net::message_kind kind) const {
  net::message_header made;
  made.group = number_;
  made.kind = kind;
  made.from = group_.member;
  made.num_ends = num_ends_;
  auto [sequence, signature] = calls_.newest();
  made.sequence = sequence;
  if (signature) made.signature = *signature;
  return made;
}

void ucx_exchange::begin_call(std::uint64_t sequence, const call_signature& signature) {
  std::lock_guard lock(fabric_->mutex());
  calls_.add(sequence, signature);
  peers_.compare_call(sequence, signature);
}

net::message_header ucx_exchange::header_of_call(const net::message_key& key,
                                                 const call_signature& signature) const {
  auto made = header(net::message_kind::elements);
  made.sequence = key.sequence;
  made.step = key.step;
  made.channel = key.channel;
  made.signature = signature;
  return made;
}

std::shared_ptr<const net::transfer> ucx_exchange::post_send(int to, const net::message_key& key,
                                                             const call_signature& signature,
                                                             std::span<const std::byte> bytes) {
  std::lock_guard lock(fabric_->mutex());
  return transfers_.send(to, header_of_call(key, signature), bytes);
}

std::shared_ptr<const net::transfer> ucx_exchange::post_receive(int from, const net::message_key& key,
                                                                const call_signature& expected,
                                                                std::span<std::byte> bytes) {
  std::lock_guard lock(fabric_->mutex());
  return transfers_.receive(from, header_of_call(key, expected), bytes);
}

void ucx_exchange::post_call_notice(int to, std::uint64_t sequence, const call_signature& signature) {
  std::lock_guard lock(fabric_->mutex());
  auto notice = header(net::message_kind::call_notice);
  notice.sequence = sequence;
  notice.signature = signature;
  send_control(to, notice, {});
}

/// Not to a member whose connection is lost.
void ucx_exchange::send_control(int member, const net::message_header& header, const std::string& text) {
  if (!peers_[member].status.lost_cause.empty()) return;
  auto sent = std::make_shared<ucx_message>();
  sent->owner = this;
  sent->connection = peers_[member].connection;
  sent->member = member;
  sent->header = header;
  auto bytes = std::as_bytes(std::span(text));
  sent->own_bytes.assign(bytes.begin(), bytes.end());
  fabric_->connections().send(sent, sent->own_bytes);
}

void ucx_exchange::send_control_to_all(net::message_kind kind, const std::string& text) {
  for (int i = 0; i < group_.size(); ++i)
    if (i != group_.member) send_control(i, header(kind), text);
}

void ucx_exchange::send_to_all(net::message_kind kind, const std::string& text) {
  std::lock_guard lock(fabric_->mutex());
  send_control_to_all(kind, text);
}

void ucx_exchange::clear_reports() {
  std::lock_guard lock(fabric_->mutex());
  for (auto& each : peers_.all()) each.status.report.reset();
}

peer_status ucx_exchange::status_of(int member) const {
  std::lock_guard lock(fabric_->mutex());
  return peers_[member].status;
}

int ucx_exchange::num_pending(int member) const {
  std::lock_guard lock(fabric_->mutex());
  return peers_[member].status.num_pending;
}

std::pair<std::uint64_t, std::optional<call_signature>> ucx_exchange::newest_call() const {
  std::lock_guard lock(fabric_->mutex());
  return calls_.newest();
}

std::vector<peer_status> ucx_exchange::statuses() const {
  std::lock_guard lock(fabric_->mutex());
  std::vector<peer_status> all;
  for (int i = 0; i < group_.size(); ++i) all.push_back(peers_[i].status);
  return all;
}

std::optional<failure_report> ucx_exchange::received_failure() const {
  std::lock_guard lock(fabric_->mutex());
  return received_failure_;
}

bool ucx_exchange::progress() {
  bool moved = fabric_->progress(this);
  if (!has_events_.load(std::memory_order_acquire)) return moved;
  handle_events();
  return true;
}

void ucx_exchange::drain() {
  constexpr int max_rounds = 1000;
  for (int round = 0; round < max_rounds && fabric_->progress_next(this); ++round) continue;
  if (has_events_) handle_events();
}

void ucx_exchange::handle_events() {
  std::vector<int> requests;
  {
    std::lock_guard lock(fabric_->mutex());
    has_events_ = false;
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    requests.swap(report_requests_);
  }
  if (requests.empty() || !hooks_.describe) return;
  auto report = encode(hooks_.describe());
  std::lock_guard lock(fabric_->mutex());
  for (int each : requests) send_control(each, header(net::message_kind::report), report);
}

/// The first failure is kept for the thread that polls for this group.
bool ucx_exchange::on_message(const net::message_header& header, std::span<const std::byte> body,
                              void* descriptor) {
  if (header.from < 0 || header.from >= group_.size() || header.from == group_.member) return false;
  try {
    return accept(header, body, descriptor);
  } catch (...) {
    if (!transfers_.is_stopped() && !failure_) failure_ = std::current_exception();
    has_events_.store(true, std::memory_order_release);
    return false;
  }
}

bool ucx_exchange::accept(const net::message_header& header, std::span<const std::byte> body,
                          void* descriptor) {
  auto& from = peers_[header.from];
  peers_.record_call(header);
  switch (header.kind) {
    case net::message_kind::elements:
      return transfers_.accept(header, body, descriptor);
    case net::message_kind::report_request:
      report_requests_.push_back(header.from);
      has_events_.store(true, std::memory_order_release);
      break;
    case net::message_kind::report:
      from.status.report = decode_failure_report(body);
      break;
    case net::message_kind::failure:
      from.status.has_aborted = true;
      transfers_.release(header.from);
      if (received_failure_) break;
      received_failure_ = decode_failure_report(body);
      if (!failure_)
        failure_ =
            std::make_exception_ptr(failure_diagnosis(group_).aborted_by(header.from, *received_failure_));
      has_events_.store(true, std::memory_order_release);
      transfers_.stop();
      break;
    case net::message_kind::leaving:
      from.status.has_left = true;
      if (transfers_.is_stopped()) transfers_.release(header.from);
      has_losses_.store(true, std::memory_order_relaxed);
      break;
    case net::message_kind::hello:
      peers_.record_hello(header);
      break;
    case net::message_kind::ready:
      from.status.is_ready = true;
      break;
    case net::message_kind::call_notice:
      break;
  }
  return false;
}

void ucx_exchange::on_lost(int connection, const std::string& cause) {
  if (peers_.on_lost(connection, cause)) has_losses_.store(true, std::memory_order_relaxed);
}

}  // namespace troupe::collective
