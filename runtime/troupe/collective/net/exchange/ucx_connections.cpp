#include "troupe/collective/net/exchange/ucx_connections.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "troupe/ucx/ucx_context.hpp"
#include "troupe/ucx/ucx_library.hpp"

namespace troupe::collective {
namespace {

constexpr unsigned message_id = 1;

}  // namespace

ucx_connections::ucx_connections(ucp_context_h context, listener& callbacks)
    : context_(context), listener_(callbacks) {
  begin();
}

void ucx_connections::begin() {
  if (worker_) return;
  auto made = std::make_unique<ucx::ucx_worker>(context_);
  made->handle_messages(message_id, on_message, this);
  events_.add(made->event_fd(), EPOLLIN);
  worker_ = std::move(made);
  phase_ = phase::running;
}

std::string ucx_connections::address() {
  begin();
  auto bytes = worker_->address();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

ucx_connections::~ucx_connections() { destroy(); }

// A forced close of the one endpoint would do, but UCX 1.13 crashed in a later round of progress if the peer
// was in the middle of writing.
void ucx_connections::end(const std::string& cause) {
  destroy();
  ++num_ends_;
  in_flight_.clear();
  for (auto& each : peers_) mark_lost(each, cause);
  broken_.clear();
}

void ucx_connections::destroy() {
  if (!worker_) return;
  ucx::ucx_log_suppressor requests_in_flight_are_expected;
  std::vector<peer*> all;
  for (auto& each : peers_) all.push_back(&each);
  phase_ = phase::closing;
  close(all);
  // UCX 1.18 frees twice what a closed endpoint has left to be done in a later round, if the worker is
  // destroyed before. On Debian 13 that happened in each loss of a member in a large all_to_all; with these
  // rounds in none.
  constexpr int later_rounds = 16;
  for (int round = 0; round < later_rounds; ++round) worker_->progress();
  phase_ = phase::destroying;
  worker_.reset();  // which takes its descriptor out of events_
}

/// UCX 1.13 requires that endpoints with error handling have no requests when their worker is destroyed. A
/// forced close cancels the requests.
void ucx_connections::close(const std::vector<peer*>& closed) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  std::vector<void*> closing;
  for (auto* each : closed) {
    if (!each->endpoint) continue;
    auto* request = ucp_ep_close_nbx(std::exchange(each->endpoint, nullptr), &param);
    if (UCS_PTR_IS_PTR(request)) closing.push_back(request);
  }
  for (auto* request : closing) {
    while (ucp_request_check_status(request) == UCS_INPROGRESS) worker_->progress();
    ucp_request_free(request);
  }
}

int ucx_connections::connect(const std::string& address) {
  begin();
  auto& to = peers_.emplace_back();
  to.connections = this;
  to.connection = static_cast<int>(peers_.size()) - 1;
  auto params = ucx::endpoint_params(std::as_bytes(std::span(address)));
  params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {on_broken, &to};
  auto status = ucp_ep_create(worker_->get(), &params, &to.endpoint);
  if (status != UCS_OK) {
    to.endpoint = nullptr;
    mark_lost(to, ucs_status_string(status));
  }
  return to.connection;
}

void ucx_connections::lose(int connection, const std::string& cause) {
  mark_lost(peers_[static_cast<std::size_t>(connection)], cause);
}

bool ucx_connections::has_in_flight(const message_owner* owner) const {
  return std::ranges::any_of(in_flight_, [&](const pending_message& each) {
    return each.message->owner == owner && each.message->is_of_call;
  });
}

std::set<int> ucx_connections::in_flight_of(const message_owner* owner) const {
  std::set<int> connections;
  for (const auto& each : in_flight_)
    if (each.message->owner == owner && each.message->is_of_call)
      connections.insert(each.message->connection);
  return connections;
}

bool ucx_connections::has_other_in_flight(const std::set<int>& connections) const {
  return std::ranges::any_of(in_flight_, [&](const pending_message& each) {
    return !each.message->is_of_call && !connections.contains(each.message->connection);
  });
}

std::size_t ucx_connections::bytes_in_flight(const message_owner* owner) const {
  std::size_t sum = 0;
  for (const auto& each : in_flight_)
    if (each.message->owner == owner && each.message->is_of_call) sum += each.message->size_bytes;
  return sum;
}

void ucx_connections::forget(const message_owner* owner) {
  for (auto& each : in_flight_)
    if (each.message->owner == owner) each.message->owner = nullptr;
}

ucx_connections::pending_message& ucx_connections::start(const std::shared_ptr<ucx_message>& message) {
  auto& made = in_flight_.emplace_back(pending_message{this, message, {}});
  made.self = std::prev(in_flight_.end());
  return made;
}

void ucx_connections::finish(pending_message& pending, ucs_status_t status) {
  auto message = std::move(pending.message);
  in_flight_.erase(pending.self);
  if (status == UCS_OK)
    listener_.on_done(*message);
  else
    mark_lost(peers_[static_cast<std::size_t>(message->connection)], ucs_status_string(status));
}

void ucx_connections::send(const std::shared_ptr<ucx_message>& sent, std::span<const std::byte> bytes) {
  auto& to = peers_[static_cast<std::size_t>(sent->connection)];
  if (to.is_lost) return;
  sent->size_bytes = bytes.size();
  auto& started = start(sent);
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = on_sent;
  param.user_data = &started;
  if (sent->by_rendezvous) {
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_RNDV;
  }
  auto* request = ucp_am_send_nbx(to.endpoint, message_id, &sent->header, sizeof sent->header, bytes.data(),
                                  bytes.size(), &param);
  if (!UCS_PTR_IS_PTR(request)) finish(started, UCS_PTR_STATUS(request));
}

void ucx_connections::release(void* descriptor) {
  if (worker_) ucp_am_data_release(worker_->get(), descriptor);
}

void ucx_connections::fetch(const std::shared_ptr<ucx_message>& received, void* descriptor) {
  if (is_lost(received->connection)) return;
  received->size_bytes = received->place.size();
  auto& started = start(received);
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.recv_am = on_fetched;
  param.user_data = &started;
  auto* request = ucp_am_recv_data_nbx(worker_->get(), descriptor, received->place.data(),
                                       received->place.size(), &param);
  if (!UCS_PTR_IS_PTR(request)) finish(started, UCS_PTR_STATUS(request));
}

void ucx_connections::on_completed(void* handle, pending_message& pending, ucs_status_t status) {
  if (phase_ == phase::destroying) return;
  ucp_request_free(handle);
  if (phase_ == phase::running) finish(pending, status);
}

void ucx_connections::on_sent(void* request, ucs_status_t status, void* user_data) {
  auto& pending = *static_cast<ucx_connections::pending_message*>(user_data);
  pending.connections->on_completed(request, pending, status);
}

void ucx_connections::on_fetched(void* request, ucs_status_t status, std::size_t, void* user_data) {
  on_sent(request, status, user_data);
}

ucs_status_t ucx_connections::on_message(void* self, const void* head, std::size_t head_bytes, void* body,
                                         std::size_t body_bytes, const ucp_am_recv_param_t* param) {
  auto& at = *static_cast<ucx_connections*>(self);
  net::message_header header;
  if (at.phase_ != phase::running || head_bytes != sizeof header) return UCS_OK;
  std::memcpy(&header, head, sizeof header);
  bool is_rendezvous = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  try {
    bool is_deferred = at.listener_.on_message(
        header, {is_rendezvous ? nullptr : static_cast<const std::byte*>(body), body_bytes},
        is_rendezvous ? body : nullptr);
    return is_rendezvous && is_deferred ? UCS_INPROGRESS : UCS_OK;
  } catch (...) {  // not through UCX, which is C
    if (!at.failure_) at.failure_ = std::current_exception();
    return UCS_OK;
  }
}

void ucx_connections::on_broken(void* lost_peer, ucp_ep_h, ucs_status_t status) {
  auto& lost = *static_cast<peer*>(lost_peer);
  if (lost.connections->phase_ == phase::running)
    lost.connections->mark_lost(lost, ucs_status_string(status));
}

void ucx_connections::mark_lost(peer& lost, const std::string& cause) {
  if (std::exchange(lost.is_lost, true)) return;
  broken_.push_back(&lost);
  listener_.on_lost(lost.connection, cause);
}

bool ucx_connections::progress() {
  if (!worker_) return false;
  bool moved = worker_->progress();
  close(std::exchange(broken_, {}));  // not within a callback of UCX
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return moved;
}

void ucx_connections::flush(std::chrono::steady_clock::time_point deadline) {
  if (!worker_) return;
  ucp_request_param_t param{};
  auto* request = ucp_worker_flush_nbx(worker_->get(), &param);
  if (!UCS_PTR_IS_PTR(request)) return;
  while (ucp_request_check_status(request) == UCS_INPROGRESS && std::chrono::steady_clock::now() < deadline)
    worker_->progress();
  if (ucp_request_check_status(request) != UCS_INPROGRESS) ucp_request_free(request);
}

}  // namespace troupe::collective
