#include "troupe/transport/control_plane.hpp"

#include <algorithm>
#include <exception>

namespace troupe {
namespace {

constexpr unsigned control_message = 1;

}  // namespace

control_plane::control_plane(ucp_context_h context, plane_settings& settings)
    : settings_(settings), worker_(std::make_unique<ucx_worker>(context)) {
  worker_->handle_messages(control_message, on_frame, this);
}

control_plane::~control_plane() {
  stopping_ = true;
  worker_.reset();
}

void control_plane::connect(const std::map<int, node_address>& peers) {
  close_broken();
  for (auto entry = connections_.begin(); entry != connections_.end();) {
    auto wanted = peers.find(entry->first);
    bool known = wanted != peers.end() && wanted->second.control == entry->second.address;
    if (!known) close(entry->second);
    entry = entry->second.endpoint ? std::next(entry) : connections_.erase(entry);
  }
  // What is still to be reported is about connections that are gone; said now, it would be held against new
  // ones.
  failures_.clear();
  for (const auto& [rank, address] : peers)
    if (rank != settings_.rank && !connections_.contains(rank)) open(rank, address.control);
}

void control_plane::open(int rank, const std::vector<std::byte>& address) {
  auto& made = connections_[rank] = {this, rank, address, nullptr, 0};
  auto params = endpoint_params(made.address);
  params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {on_broken, &made};
  auto status = ucp_ep_create(worker_->get(), &params, &made.endpoint);
  if (status == UCS_OK) return;
  made.endpoint = nullptr;
  failures_.push_back(
      {rank, std::string("the control connection cannot be made: ") + ucs_status_string(status)});
}

void control_plane::close(connection& broken) {
  if (!broken.endpoint) return;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  auto* request = ucp_ep_close_nbx(std::exchange(broken.endpoint, nullptr), &param);
  if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
}

bool control_plane::send(int to_rank, std::uint64_t generation, std::span<const std::byte> body) {
  auto found = connections_.find(to_rank);
  if (found == connections_.end() || !found->second.endpoint) return true;
  auto& to = found->second;
  auto& sent = in_flight_.emplace_back(message{this, {}, {body.begin(), body.end()}, {}});
  sent.self = std::prev(in_flight_.end());
  frame_header frame{frame_kind::control,
                     static_cast<std::uint32_t>(settings_.rank),
                     static_cast<std::uint32_t>(to_rank),
                     generation,
                     ++to.sequence,
                     body.size()};
  sent.head = seal_frame(settings_.key, frame, {}, body);
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  // Eager, because a rendezvous would be overtaken by what is sent after it. Reply, so that the receiver
  // knows which connection a frame came by even if it cannot believe what is in it.
  param.flags = UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_REPLY;
  param.cb.send = on_sent;
  param.user_data = &sent;
  ++settings_.counters.control_frames_sent;
  auto* request = ucp_am_send_nbx(to.endpoint, control_message, sent.head.data(), sent.head.size(),
                                  sent.body.data(), sent.body.size(), &param);
  if (UCS_PTR_IS_PTR(request)) return false;
  in_flight_.erase(sent.self);
  // An error means that the connection broke, which on_broken reports.
  return !UCS_PTR_IS_ERR(request);
}

void control_plane::on_sent(void* request, ucs_status_t, void* user_data) {
  auto& sent = *static_cast<message*>(user_data);
  if (sent.plane->stopping_) return;
  ucp_request_free(request);
  sent.plane->in_flight_.erase(sent.self);
}

void control_plane::on_broken(void* user_data, ucp_ep_h, ucs_status_t status) {
  auto& broken = *static_cast<connection*>(user_data);
  if (broken.plane->stopping_) return;
  broken.plane->broken_.push_back(
      {broken.rank, std::string("the control connection broke: ") + ucs_status_string(status)});
}

ucs_status_t control_plane::on_frame(void* self, const void* head, std::size_t head_bytes, void* body,
                                     std::size_t body_bytes, const ucp_am_recv_param_t* param) {
  auto& plane = *static_cast<control_plane*>(self);
  if (plane.stopping_) return UCS_OK;
  bool named = (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0;
  auto sender = named ? param->reply_ep : nullptr;
  try {
    // Our own nodes never send control messages by rendezvous; what that would announce is not there to be
    // read.
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0)
      plane.refuse(sender, "a rendezvous");
    else
      plane.receive({static_cast<const std::byte*>(head), head_bytes},
                    {static_cast<const std::byte*>(body), body_bytes}, sender);
  } catch (const std::exception& failure) {  // no memory; UCX knows no exceptions
    plane.refuse(sender, failure.what());
  }
  return UCS_OK;
}

void control_plane::receive(std::span<const std::byte> head, std::span<const std::byte> body,
                            ucp_ep_h sender) {
  auto opened = open_frame(settings_.key, head, body.size(), body);
  if (auto* fault = std::get_if<frame_fault>(&opened)) return refuse(sender, std::string(to_string(*fault)));
  const auto& header = std::get<frame_head>(opened).header;
  if (header.kind != frame_kind::control || !std::cmp_equal(header.to_rank, settings_.rank))
    return refuse(sender, "not meant for this node");
  arrivals_.push_back({static_cast<int>(header.from_rank), header.generation, {body.begin(), body.end()}});
}

void control_plane::refuse(ucp_ep_h sender, const std::string& cause) {
  ++settings_.counters.bad_frames;
  for (const auto& [rank, entry] : connections_)
    if (sender && entry.endpoint == sender) broken_.push_back({rank, "it sent a bad frame: " + cause});
}

void control_plane::break_connection(const peer_failure& failure) {
  auto found = connections_.find(failure.rank);
  if (found == connections_.end() || !found->second.endpoint) return;
  close(found->second);
  failures_.push_back(failure);
}

void control_plane::close_broken() {
  for (const auto& failure : std::exchange(broken_, {})) break_connection(failure);
}

std::vector<peer_failure> control_plane::take_failures() {
  close_broken();
  return std::exchange(failures_, {});
}

}  // namespace troupe
