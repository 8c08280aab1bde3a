#include "troupe/transport/data_plane.hpp"

#include <algorithm>
#include <exception>

#include "troupe/transport/ucx_library.hpp"
#include "troupe/wire/frame.hpp"

namespace troupe {
namespace {

constexpr unsigned tensor_message = 1;
/// UCX reads another process's memory in segments, one in each progress call. They are much larger than this.
constexpr std::size_t smallest_segment_bytes = 4096;
/// Far more than the cleanup after failed reads takes.
constexpr std::size_t cleanup_calls = 1000;

}  // namespace

data_plane::data_plane(ucp_context_h context, plane_settings& settings, std::uint64_t generation)
    : settings_(settings), generation_(generation), worker_(std::make_unique<ucx_worker>(context)) {
  worker_->handle_messages(tensor_message, on_frame, this);
}

data_plane::~data_plane() {
  if (worker_) stop();
}

transfer_list data_plane::stop() {
  ucx_silence failing_reads_are_expected;
  phase_ = phase::finishing_reads;
  finish_reads();
  phase_ = phase::destroying;
  worker_.reset();
  return std::move(in_flight_);
}

/// UCX 1.13 aborts the process if a worker is destroyed in the middle of reading another process's memory.
/// Such a read goes on whatever the other process does (if that is dead the read fails, which takes UCX a few
/// calls to clean up after), and no new ones are begun, so a known number of calls ends them all. A worker
/// that can be armed has none. Fetches that need the other side's help just stay in flight.
void data_plane::finish_reads() {
  std::size_t calls = cleanup_calls;
  for (const auto& transfer : in_flight_)
    if (transfer.fetched) calls += transfer.value.size_bytes() / smallest_segment_bytes + 1;
  for (; calls > 0; --calls)
    if (!worker_->progress() && worker_->arm()) return;
}

void data_plane::connect(std::uint64_t generation, const std::map<int, node_address>& peers) {
  generation_ = generation;
  for (const auto& [rank, address] : peers) {
    if (rank == settings_.rank) continue;
    auto params = endpoint_params(address.data);
    auto& peer = peers_[rank];
    peer.code = connection_code(settings_.key, generation, static_cast<std::uint32_t>(settings_.rank),
                                static_cast<std::uint32_t>(rank));
    auto status = ucp_ep_create(worker_->get(), &params, &peer.endpoint);
    if (status == UCS_OK) continue;
    peers_.erase(rank);
    fail(rank, "the data connection cannot be made", status);
  }
}

bool data_plane::send(int to_rank, const tensor_tag& tag, const std::optional<authentication_code>& body_code,
                      tensor value) {
  auto found = peers_.find(to_rank);
  if (found == peers_.end()) return true;
  auto& to = found->second;
  frame_header frame{frame_kind::tensor,
                     static_cast<std::uint32_t>(settings_.rank),
                     static_cast<std::uint32_t>(to_rank),
                     generation_,
                     ++to.sequence,
                     value.size_bytes()};
  encode_tensor_header(tag, value.type(), value.extents(), body_code, extension_);
  auto& transfer = start(to_rank, std::move(value));
  write_frame(frame, extension_, to.code, transfer.head);
  if (!settings_.heads_are_private)
    std::ranges::copy(settings_.key.code(covered_head(transfer.head)),
                      transfer.head.end() - authentication_code_bytes);
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = on_sent;
  param.user_data = &transfer;
  settings_.counters.count_sent(transfer.value);
  auto bytes = transfer.value.bytes();
  auto* request = ucp_am_send_nbx(to.endpoint, tensor_message, transfer.head.data(), transfer.head.size(),
                                  bytes.data(), bytes.size(), &param);
  if (UCS_PTR_IS_PTR(request)) return false;
  if (UCS_PTR_IS_ERR(request)) fail(to_rank, "a tensor could not be sent", UCS_PTR_STATUS(request));
  end(transfer);
  return !UCS_PTR_IS_ERR(request);
}

void data_plane::on_sent(void* request, ucs_status_t status, void* user_data) {
  auto& transfer = *static_cast<tensor_transfer*>(user_data);
  auto& plane = *transfer.plane;
  if (plane.phase_ == phase::destroying) return;
  ucp_request_free(request);
  if (status != UCS_OK) plane.fail(transfer.peer, "a tensor could not be sent", status);
  plane.end(transfer);
}

ucs_status_t data_plane::on_frame(void* self, const void* head, std::size_t head_bytes, void* body,
                                  std::size_t body_bytes, const ucp_am_recv_param_t* param) {
  auto& plane = *static_cast<data_plane*>(self);
  if (plane.phase_ != phase::running) return UCS_OK;
  try {
    plane.receive({static_cast<const std::byte*>(head), head_bytes}, body, body_bytes,
                  (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0);
  } catch (const std::exception&) {  // no memory for what is announced; UCX knows no exceptions
    ++plane.settings_.counters.bad_frames;
  }
  return UCS_OK;
}

void data_plane::receive(std::span<const std::byte> head, void* body, std::size_t body_bytes,
                         bool rendezvous) {
  auto opened = open(head, body_bytes);
  if (!opened) return;
  auto& [from_rank, header] = *opened;
  auto value = tensor::empty(header.extents, header.type);
  if (rendezvous) {
    fetch(from_rank, std::move(header), std::move(value), body);
  } else {
    std::copy_n(static_cast<const std::byte*>(body), body_bytes, value.bytes().data());
    settings_.counters.tensor_bytes_copied += body_bytes;
    arrivals_.push_back({from_rank, std::move(header), std::move(value)});
  }
}

std::optional<std::pair<int, tensor_header>> data_plane::open(std::span<const std::byte> head,
                                                              std::size_t body_bytes) {
  authentication_code code;
  auto opened = read_frame(head, body_bytes, code);
  auto* frame = std::get_if<frame_head>(&opened);
  std::optional<tensor_header> header;
  if (frame && frame->header.kind == frame_kind::tensor &&
      std::cmp_equal(frame->header.to_rank, settings_.rank) && is_authentic(frame->header, head, code))
    header = decode_tensor_header(frame->extension, body_bytes);
  if (!header || header->tag.generation != frame->header.generation) {
    ++settings_.counters.bad_frames;
    return std::nullopt;
  }
  if (header->tag.generation < generation_) {
    ++settings_.counters.stale_frames;
    return std::nullopt;
  }
  return std::pair(static_cast<int>(frame->header.from_rank), std::move(*header));
}

bool data_plane::is_authentic(const frame_header& header, std::span<const std::byte> head,
                              const authentication_code& code) {
  if (!settings_.heads_are_private) return same_code(code, settings_.key.code(covered_head(head)));
  auto found = expected_.find(header.from_rank);
  if (found != expected_.end() && found->second.generation == header.generation)
    return same_code(code, found->second.code);
  auto wanted = connection_code(settings_.key, header.generation, header.from_rank, header.to_rank);
  if (!same_code(code, wanted)) return false;
  expected_[header.from_rank] = {header.generation, wanted};
  return true;
}

void data_plane::fetch(int from_rank, tensor_header header, tensor value, void* descriptor) {
  auto& transfer = start(from_rank, std::move(value));
  transfer.fetched = std::move(header);
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.recv_am = on_fetched;
  param.user_data = &transfer;
  auto bytes = transfer.value.bytes();
  auto* request = ucp_am_recv_data_nbx(worker_->get(), descriptor, bytes.data(), bytes.size(), &param);
  // A request means that on_fetched takes care of the transfer, or already did: then it is gone.
  if (!UCS_PTR_IS_PTR(request)) finish_fetch(transfer, UCS_PTR_STATUS(request));
}

void data_plane::on_fetched(void* request, ucs_status_t status, std::size_t, void* user_data) {
  auto& transfer = *static_cast<tensor_transfer*>(user_data);
  if (transfer.plane->phase_ == phase::destroying) return;
  ucp_request_free(request);
  transfer.plane->finish_fetch(transfer, status);
}

void data_plane::finish_fetch(tensor_transfer& transfer, ucs_status_t status) {
  if (status == UCS_OK)
    arrivals_.push_back({transfer.peer, std::move(*transfer.fetched), std::move(transfer.value)});
  else
    fail(transfer.peer, "a tensor could not be fetched", status);
  end(transfer);
}

tensor_transfer& data_plane::start(int peer, tensor value) {
  if (ended_.empty())
    in_flight_.emplace_back();
  else
    in_flight_.splice(in_flight_.end(), ended_, ended_.begin());
  auto& transfer = in_flight_.back();
  transfer.plane = this;
  transfer.peer = peer;
  transfer.value = std::move(value);
  transfer.self = std::prev(in_flight_.end());
  return transfer;
}

void data_plane::end(tensor_transfer& transfer) {
  transfer.value = {};
  transfer.fetched.reset();
  ended_.splice(ended_.begin(), in_flight_, transfer.self);
}

void data_plane::fail(int rank, const std::string& action, ucs_status_t status) {
  failures_.push_back({rank, action + ": " + ucs_status_string(status)});
}

}  // namespace troupe
