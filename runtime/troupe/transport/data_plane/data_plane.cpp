#include "troupe/transport/data_plane/data_plane.hpp"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <new>

#include "troupe/error/errors.hpp"
#include "troupe/messaging/handshake.hpp"
#include "troupe/posix/files/proc_folder.hpp"
#include "troupe/ucx/ucx_library.hpp"

namespace troupe::transport {
namespace {

constexpr unsigned tensor_message = 1;
/// UCX reads another process's memory in segments, one per progress call. This is a lower bound of their
/// size.
constexpr std::size_t smallest_segment_bytes = 4096;
/// Progress calls for the cleanup after failed reads, which needs far fewer.
constexpr std::size_t cleanup_calls = 1000;
/// Limit of fetches in flight when this thread copies the elements itself. More would not be faster, and
/// would evict the last tensors from the cache.
constexpr std::size_t copies_at_once = 2;

constexpr int unknown_rank = -1;
constexpr std::size_t max_lost = 16;
constexpr auto bad_head = "its header is not authentic or has another format";
constexpr auto bad_layout = "its header does not match its size";
constexpr auto no_memory = "there is no memory for it";
constexpr auto not_mapped = "its header names memory that this process does not read";

/// Progress calls to complete a connection, which needs far fewer. A limit, since peers may send
/// continuously.
constexpr int max_idle_polls = 100;

}  // namespace

data_plane::data_plane(ucp_context_h context, plane_settings& settings, shared_memory::shared_heap& shared,
                       std::uint64_t generation)
    : settings_(settings),
      generation_(generation),
      nonce_(messaging::make_nonce()),
      worker_(std::make_unique<ucx::ucx_worker>(context)),
      outgoing_(settings.delay),
      shared_(shared),
      sharing_(shared),
      reader_(settings, nonce_),
      max_fetches_(settings.heads_are_private ? copies_at_once : std::numeric_limits<std::size_t>::max()) {
  worker_->handle_messages(tensor_message, on_frame, this);
}

std::vector<std::byte> data_plane::address() const {
  std::vector<std::byte> bytes(nonce_.begin(), nonce_.end());
  append_heap_address({::getpid(), shared_.name()}, bytes);
  auto worker = worker_->address();
  bytes.insert(bytes.end(), worker.begin(), worker.end());
  return bytes;
}

data_plane::~data_plane() {
  if (worker_) stop();
}

transfer_list data_plane::stop() {
  ucx::ucx_log_suppressor failing_reads_are_expected;
  phase_ = phase::finishing_reads;
  finish_reads();
  phase_ = phase::destroying;
  worker_.reset();
  for (const auto& transfer : in_flight_) note_ended(transfer);
  for (const auto& [rank, what] : outgoing_.drop()) peers_.at(rank).counted->count_completed(what.value);
  return std::move(in_flight_);
}

/// UCX 1.13 aborts the process if a worker is destroyed while it reads another process's memory. Such a read
/// does not depend on the other process: if that has ended, the read fails and UCX cleans up in a few calls.
/// No new reads start, so a known number of calls completes them all. A worker that can be armed has no read
/// in progress. Fetches that need the sender's progress stay in flight.
void data_plane::finish_reads() {
  std::size_t calls = cleanup_calls;
  for (const auto& transfer : in_flight_)
    if (transfer.arrival) calls += transfer.arrival->value.size_bytes() / smallest_segment_bytes + 1;
  for (; calls > 0; --calls)
    if (!worker_->progress() && worker_->arm()) return;
}

void data_plane::connect(std::uint64_t generation, const std::map<int, process_address>& peers) {
  generation_ = generation;
  poll_until_idle();
  for (const auto& [rank, address] : peers) {
    if (rank == settings_.rank) continue;
    auto bytes = std::span<const std::byte>(address.data);
    if (bytes.size() <= sizeof(receiver_nonce) + heap_address_bytes)
      throw_invalid("transport::connect",
                    "an address of rank " + std::to_string(rank) + " with a nonce and a heap",
                    std::to_string(bytes.size()) + " bytes");
    receiver_nonce receiver;
    std::ranges::copy(bytes.first<sizeof receiver>(), receiver.begin());
    auto params = ucx::endpoint_params(bytes.subspan(sizeof receiver + heap_address_bytes));
    peer made{nullptr, {settings_, generation, rank, receiver}, &settings_.counters.with(rank), false};
    auto status = ucp_ep_create(worker_->get(), &params, &made.endpoint);
    if (status == UCS_ERR_UNREACHABLE) throw bad_input(no_way_for_tensors(rank));
    if (status != UCS_OK) {
      fail(rank, "the data connection cannot be made", status);
      continue;
    }
    peers_.insert_or_assign(rank, std::move(made));
    sharing_.connect(rank, heap_address_in(bytes.subspan(sizeof receiver, heap_address_bytes)));
  }
}

std::string data_plane::no_way_for_tensors(int rank) const {
  auto problem =
      "rank " + std::to_string(settings_.rank) + " and rank " + std::to_string(rank) +
      " share neither memory, as on several hosts or in containers with IPC, PID or user namespaces "
      "of their own" +
      (posix::proc_is_of_this_namespace()
           ? ""
           : ", or where /proc shows another PID namespace, as here (`mount -t proc proc /proc` in this one, "
             "or unshare --mount-proc)") +
      ", nor a network that tensors may take";
  if (!settings_.connection_advice.empty()) return problem + settings_.connection_advice;
  return problem +
         ". Start all processes with --network-interface NAME, the name of an interface by which they reach "
         "each other (see `ip address`)";
}

/// Calls progress until there is nothing to do and returns whether anything was done. Needed before a send to
/// a peer whose connection is not established. If the peer ends meanwhile, UCX 1.13 removes all lanes from
/// its endpoint and marks it as failed only in the next progress call. A send in between crashes.
bool data_plane::poll_until_idle() {
  auto calls = max_idle_polls;
  while (calls > 0 && worker_->progress()) --calls;
  return calls < max_idle_polls;
}

bool data_plane::send(int to_rank, const tensor_tag& tag,
                      const std::optional<messaging::authentication_code>& body_code, tensor&& value) {
  auto found = peers_.find(to_rank);
  if (found == peers_.end()) return true;
  found->second.counted->count_sent(value);
  outgoing_tensor what{tag, body_code, std::move(value)};
  if (outgoing_.may_go(to_rank, tag)) return send_now(to_rank, std::move(what));
  outgoing_.wait(to_rank, std::move(what));
  return false;
}

/// Whatever may go now; whether anything was sent.
bool data_plane::send_waiting() {
  if (phase_ != phase::running) return false;
  bool sent = false;
  for (; auto next = outgoing_.take(); sent = true) send_now(next->first, std::move(next->second));
  return sent;
}

bool data_plane::send_now(int to_rank, outgoing_tensor&& what) {
  auto& to = peers_.at(to_rank);
  tensor_header_options options{std::move(what.body_code),
                                sharing_.place_of(std::as_const(what.value).bytes())};
  bool is_shared = options.place && sharing_.is_read_by(to_rank, *options.place);
  if (is_shared) settings_.counters.tensor_bytes_shared += what.value.size_bytes();
  outgoing_.begin(to_rank, what.tag, what.value.size_bytes());
  auto body = is_shared ? std::span<const std::byte>() : std::as_const(what.value).bytes();
  return send_frame(to_rank, what.tag, options, std::move(what.value), body, to.counted);
}

/// `value` is kept until UCX has sent `body`.
bool data_plane::send_frame(int to_rank, const tensor_tag& tag, const tensor_header_options& options,
                            tensor&& value, std::span<const std::byte> body, peer_counters* counted) {
  auto& to = peers_.at(to_rank);
  bool made_work = !to.was_heard && poll_until_idle();
  to.headers.write(tag, options, value, body, head_);
  auto& transfer = start(to_rank);
  transfer.value = std::move(value);
  transfer.head.swap(head_);
  transfer.tag = tag;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = on_sent;
  param.user_data = &transfer;
  transfer.counted = counted;
  auto* request = ucp_am_send_nbx(to.endpoint, tensor_message, transfer.head.data(), transfer.head.size(),
                                  body.data(), body.size(), &param);
  if (UCS_PTR_IS_PTR(request)) return false;
  if (UCS_PTR_IS_ERR(request)) fail(to_rank, "a tensor could not be sent", UCS_PTR_STATUS(request));
  end(transfer);
  return !UCS_PTR_IS_ERR(request) && !made_work;
}

void data_plane::send_notices() {
  if (phase_ != phase::running) return;
  for (const auto& each : sharing_.take_notices())
    send_frame(each.to_rank, {.generation = generation_}, {{}, each.what}, tensor::zeros({1}, dtype::u8), {},
               nullptr);
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
  std::span<const std::byte> bytes(static_cast<const std::byte*>(head), head_bytes);
  plane.opened_.from_rank = unknown_rank;
  try {
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0)
      return plane.receive_announced(bytes, body, body_bytes);
    plane.receive(bytes, body, body_bytes);
  } catch (const std::exception&) {  // exceptions must not pass through UCX, which is written in C
    plane.lose(plane.opened_.from_rank, no_memory);
  }
  return UCS_OK;
}

void data_plane::receive(std::span<const std::byte> head, const void* body, std::size_t body_bytes) {
  auto layout = open(head, body_bytes);
  if (layout.empty()) return;
  const auto& place = opened_.options.place;
  if (place && place->report != segment_report::holds_elements) return take_notice(*place, body_bytes);
  auto& value = opened_.value;
  if (place && body_bytes == 0) {
    auto shared = refer_to_shared(layout);
    if (!shared) return lose(opened_.from_rank, not_mapped);
    value = std::move(*shared);
    return arrivals_.push_back(std::move(opened_));
  }
  if (!room_.take(layout, body_bytes, value)) return lose(opened_.from_rank, bad_layout);
  std::copy_n(static_cast<const std::byte*>(body), body_bytes, value.bytes().data());
  settings_.counters.tensor_bytes_copied += body_bytes;
  arrivals_.push_back(std::move(opened_));
}

void data_plane::take_notice(const shared_place& notice, std::size_t body_bytes) {
  if (body_bytes > 0) return lose(opened_.from_rank, bad_layout);
  sharing_.on_notice(opened_.from_rank, notice);
}

std::optional<tensor> data_plane::refer_to_shared(std::span<const std::byte> layout) const {
  auto decoded = decode_layout(layout, {});
  if (!decoded) return {};
  return sharing_.refer_to(opened_.from_rank, *opened_.options.place, *decoded);
}

/// Keeps the descriptor of a large tensor for a later fetch (UCS_INPROGRESS), or lets UCX release it
/// (UCS_OK).
ucs_status_t data_plane::receive_announced(std::span<const std::byte> head, void* descriptor,
                                           std::size_t body_bytes) {
  auto bytes = open(head, body_bytes);
  if (bytes.empty()) return UCS_OK;
  auto layout = decode_layout(bytes, body_bytes);
  if (!layout) {
    lose(opened_.from_rank, bad_layout);
    return UCS_OK;
  }
  announced what{std::move(opened_), std::move(*layout), descriptor};
  if (may_fetch()) {
    fetch(std::move(what));
    return UCS_OK;
  }
  announced_.push_back(std::move(what));
  return UCS_INPROGRESS;
}

/// Reads the header into opened_, except for the value. Returns the encoded layout of the value, or no bytes
/// if the header is not authentic or of an older generation.
std::span<const std::byte> data_plane::open(std::span<const std::byte> head, std::size_t body_bytes) {
  auto layout = reader_.read(head, body_bytes, opened_);
  if (layout.empty()) {
    lose(unknown_rank, bad_head);
    return {};
  }
  if (opened_.tag.generation < generation_) {
    ++settings_.counters.stale_frames;
    return {};
  }
  auto from = peers_.find(opened_.from_rank);
  opened_.counted = from == peers_.end() ? nullptr : from->second.counted;
  if (from != peers_.end()) from->second.was_heard = true;
  const auto& place = opened_.options.place;
  if (place && place->report == segment_report::holds_elements && body_bytes > 0)
    sharing_.on_offer(opened_.from_rank, *place);
  return layout;
}

void data_plane::fetch(announced next) {
  next.arrival.value = tensor::empty(std::move(next.layout.extents), next.layout.type);
  auto& transfer = start(next.arrival.from_rank);
  auto bytes = next.arrival.value.bytes();
  transfer.arrival = std::move(next.arrival);
  ++num_fetching_;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.recv_am = on_fetched;
  param.user_data = &transfer;
  auto* request = ucp_am_recv_data_nbx(worker_->get(), next.descriptor, bytes.data(), bytes.size(), &param);
  // If UCX returned a request, on_fetched ends the transfer, possibly before this line: do not touch it then.
  if (!UCS_PTR_IS_PTR(request)) finish_fetch(transfer, UCS_PTR_STATUS(request));
}

void data_plane::on_fetched(void* request, ucs_status_t status, std::size_t, void* user_data) {
  auto& transfer = *static_cast<tensor_transfer*>(user_data);
  auto& plane = *transfer.plane;
  if (plane.phase_ == phase::destroying) return;
  ucp_request_free(request);
  plane.finish_fetch(transfer, status);
  plane.fetch_announced();
}

void data_plane::finish_fetch(tensor_transfer& transfer, ucs_status_t status) {
  --num_fetching_;
  if (status == UCS_OK)
    arrivals_.push_back(std::move(*transfer.arrival));
  else
    fail(transfer.peer, "a tensor could not be fetched", status);
  end(transfer);
}

/// Starts the next fetches in the order of their announcement. A fetch may complete at once and then calls
/// this function again.
void data_plane::fetch_announced() {
  while (!announced_.empty() && may_fetch()) {
    auto what = std::move(announced_.front());
    announced_.pop_front();
    auto* descriptor = what.descriptor;
    auto from = what.arrival.from_rank;
    try {
      fetch(std::move(what));
    } catch (const std::bad_alloc&) {
      lose(from, no_memory);
      ucp_am_data_release(worker_->get(), descriptor);
    }
  }
}

tensor_transfer& data_plane::start(int peer) {
  if (ended_.empty())
    in_flight_.emplace_back();
  else
    in_flight_.splice(in_flight_.end(), ended_, ended_.begin());
  auto& transfer = in_flight_.back();
  transfer.plane = this;
  transfer.peer = peer;
  transfer.self = std::prev(in_flight_.end());
  return transfer;
}

void data_plane::end(tensor_transfer& transfer) {
  note_ended(transfer);
  if (transfer.counted) outgoing_.complete(transfer.peer, transfer.tag, transfer.value.size_bytes());
  transfer.counted = nullptr;
  transfer.value = {};
  transfer.arrival.reset();
  ended_.splice(ended_.begin(), in_flight_, transfer.self);
}

/// If it was sent, and is no notice.
void data_plane::note_ended(const tensor_transfer& transfer) {
  if (transfer.counted) transfer.counted->count_completed(transfer.value);
}

void data_plane::fail(int rank, const std::string& action, ucs_status_t status) {
  failures_.push_back({rank, action + ": " + ucs_status_string(status)});
}

void data_plane::lose(int rank, const char* cause) {
  ++settings_.counters.bad_frames;
  if (lost_.size() < max_lost) lost_.push_back({rank, cause});
}

}  // namespace troupe::transport
