#include "troupe/collective/net/exchange/call_transfers.hpp"

#include <cstring>

#include "troupe/collective/calls/collective_error.hpp"

namespace troupe::collective {
namespace {

/// Of messages that may wait unreceived at a member.
constexpr int max_unacknowledged = 64;

}  // namespace

std::shared_ptr<ucx_message> call_transfers::made(int member, const net::message_header& header) {
  auto message = std::make_shared<ucx_message>();
  message->owner = &owner_;
  message->connection = peer(member).connection;
  message->member = member;
  message->header = header;
  message->is_of_call = true;
  ++peer(member).status.num_pending;
  return message;
}

std::shared_ptr<ucx_message> call_transfers::send(int to, const net::message_header& header,
                                                  std::span<const std::byte> bytes) {
  auto sent = made(to, header);
  if (is_stopped_ || !peer(to).status.lost_cause.empty()) return sent;
  if (++peer(to).num_unacknowledged >= max_unacknowledged && !bytes.empty()) {
    sent->by_rendezvous = true;
    peer(to).num_unacknowledged = 0;
  }
  fabric_.connections().send(sent, bytes);
  return sent;
}

/// If an early message is another one than expected, it stays, and is released when the group ends.
std::shared_ptr<ucx_message> call_transfers::receive(int from, const net::message_header& expected,
                                                     std::span<std::byte> place) {
  auto received = made(from, expected);
  received->place = place;
  if (is_stopped_) return received;
  if (const auto* early = peer(from).find_early(expected.key())) {
    deliver(received, early->header, early->body(), early->descriptor);
    peer(from).forget_early(expected.key());
  } else {
    peer(from).post(expected.key(), received);
  }
  return received;
}

bool call_transfers::accept(const net::message_header& header, std::span<const std::byte> body,
                            void* descriptor) {
  if (is_stopped_ && !descriptor) return false;
  if (auto wanted = peer(header.from).take_posted(header.key())) {
    deliver(wanted, header, body, descriptor);
    return false;
  }
  peer(header.from).keep(header, body, descriptor);
  return true;
}

void call_transfers::deliver(const std::shared_ptr<ucx_message>& into, const net::message_header& header,
                             std::span<const std::byte> body, void* descriptor) {
  calls_.require(into->header.signature, header);
  if (body.size() != into->place.size())
    throw collective_error(collective_failure::transport, group_.name, header.sequence, {},
                           "group " + group_.name + ": a message of " + std::to_string(body.size()) +
                               " bytes came where " + std::to_string(into->place.size()) +
                               " were expected: give all members the same network_options");
  if (descriptor) return fabric_.connections().fetch(into, descriptor);
  if (!body.empty()) std::memcpy(into->place.data(), body.data(), body.size());
  on_done(*into);
}

void call_transfers::on_done(ucx_message& done) {
  done.set_done();
  if (done.is_of_call) --peer(done.member).status.num_pending;
}

void call_transfers::stop() {
  is_stopped_ = true;
  for (auto& each : peers_) each.discard();
}

void call_transfers::release(int member) {
  for (void* each : peer(member).take_unfetched())
    if (peer(member).status.lost_cause.empty()) fabric_.connections().release(each);
}

}  // namespace troupe::collective
