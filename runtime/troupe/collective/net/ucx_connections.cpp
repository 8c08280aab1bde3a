#include "troupe/collective/net/ucx_connections.hpp"

#include <cstring>
#include <utility>

#include "troupe/transport/ucx_context.hpp"
#include "troupe/transport/ucx_library.hpp"

namespace troupe {
namespace {

constexpr unsigned message_id = 1;
/// Of messages that may wait unreceived at a peer.
constexpr int max_unacknowledged = 64;

}  // namespace

ucx_connections::ucx_connections(ucp_context_h context, int num_members, listener& callbacks)
    : listener_(callbacks),
      worker_(std::make_unique<ucx_worker>(context)),
      peers_(static_cast<std::size_t>(num_members)) {
  for (int i = 0; i < num_members; ++i) {
    peers_[static_cast<std::size_t>(i)].at = this;
    peers_[static_cast<std::size_t>(i)].member = i;
  }
  worker_->handle_messages(message_id, on_message, this);
}

ucx_connections::~ucx_connections() {
  ucx_log_suppressor requests_in_flight_are_expected;
  close();
  phase_ = phase::destroying;
  worker_.reset();
}

/// UCX 1.13 requires that endpoints with error handling have no requests when their worker is destroyed. A
/// forced close cancels the requests.
void ucx_connections::close() {
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

void ucx_connections::connect(int member, std::span<const std::byte> address) {
  auto& to = peers_[static_cast<std::size_t>(member)];
  auto params = endpoint_params(address);
  params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {on_broken, &to};
  auto status = ucp_ep_create(worker_->get(), &params, &to.endpoint);
  if (status == UCS_OK) return;
  to.endpoint = nullptr;
  mark_lost(to, status);
}

ucx_connections::pending_message& ucx_connections::start(const std::shared_ptr<ucx_message>& of) {
  auto& made = in_flight_.emplace_back(pending_message{this, of, {}});
  made.self = std::prev(in_flight_.end());
  return made;
}

void ucx_connections::finish(pending_message& of, ucs_status_t status) {
  auto message = std::move(of.message);
  in_flight_.erase(of.self);
  if (status == UCS_OK)
    listener_.on_done(*message);
  else
    mark_lost(peers_[static_cast<std::size_t>(message->peer)], status);
}

void ucx_connections::send(const std::shared_ptr<ucx_message>& sent, std::span<const std::byte> bytes) {
  auto& to = peers_[static_cast<std::size_t>(sent->peer)];
  if (to.is_lost) return;
  auto& started = start(sent);
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = on_sent;
  param.user_data = &started;
  // Flow control, see the class.
  if (sent->is_of_call && ++to.num_unacknowledged >= max_unacknowledged && !bytes.empty()) {
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_RNDV;
    to.num_unacknowledged = 0;
  }
  auto* request = ucp_am_send_nbx(to.endpoint, message_id, &sent->header, sizeof sent->header, bytes.data(),
                                  bytes.size(), &param);
  if (!UCS_PTR_IS_PTR(request)) finish(started, UCS_PTR_STATUS(request));
}

void ucx_connections::fetch(const std::shared_ptr<ucx_message>& received, void* descriptor) {
  if (peers_[static_cast<std::size_t>(received->peer)].is_lost) return;
  auto& started = start(received);
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.recv_am = on_fetched;
  param.user_data = &started;
  auto* request = ucp_am_recv_data_nbx(worker_->get(), descriptor, received->place.data(),
                                       received->place.size(), &param);
  if (!UCS_PTR_IS_PTR(request)) finish(started, UCS_PTR_STATUS(request));
}

void ucx_connections::on_completed(void* handle, pending_message& of, ucs_status_t status) {
  if (phase_ == phase::destroying) return;
  ucp_request_free(handle);
  if (phase_ == phase::running) finish(of, status);
}

void ucx_connections::on_sent(void* request, ucs_status_t status, void* user_data) {
  auto& of = *static_cast<ucx_connections::pending_message*>(user_data);
  of.at->on_completed(request, of, status);
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

void ucx_connections::on_broken(void* of, ucp_ep_h, ucs_status_t status) {
  auto& lost = *static_cast<peer*>(of);
  if (lost.at->phase_ == phase::running) lost.at->mark_lost(lost, status);
}

void ucx_connections::mark_lost(peer& of, ucs_status_t status) {
  if (!std::exchange(of.is_lost, true)) listener_.on_lost(of.member, ucs_status_string(status));
}

bool ucx_connections::progress() {
  bool moved = worker_->progress();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return moved;
}

void ucx_connections::flush(std::chrono::steady_clock::time_point deadline) {
  ucp_request_param_t param{};
  auto* request = ucp_worker_flush_nbx(worker_->get(), &param);
  if (!UCS_PTR_IS_PTR(request)) return;
  while (ucp_request_check_status(request) == UCS_INPROGRESS && std::chrono::steady_clock::now() < deadline)
    worker_->progress();
  if (ucp_request_check_status(request) != UCS_INPROGRESS) ucp_request_free(request);
}

}  // namespace troupe
