#pragma once
#include <algorithm>
#include <deque>
#include <memory>
#include <span>

#include "troupe/collective/calls/group.hpp"
#include "troupe/collective/calls/operation.hpp"
#include "troupe/collective/net/exchange/messages.hpp"
#include "troupe/collective/net/exchange/network_options.hpp"

namespace troupe::collective::net {

/// What a message within a call carries. With the number of its block it is the message's step.
enum class payload : std::uint32_t { inputs, results, arrivals };
constexpr std::uint32_t num_payloads = 3;

/// One member's part in one call: the messages that it exchanges with the others. References outlive it.
class net_call {
 public:
  net_call(message_exchange& over, const group_description& group, const network_sizes& sizes,
           const collective_operation& what, std::uint64_t sequence);

  const collective_operation& operation() const { return operation_; }
  const network_sizes& sizes() const { return sizes_; }
  int member() const { return group_.member; }
  int num_members() const { return group_.size(); }
  /// The member `distance` after this one, modulo n.
  int after(int distance) const { return (member() + distance) % num_members(); }
  std::size_t element_bytes() const { return size_bytes(operation_.signature.type); }
  std::size_t whole_bytes() const {
    return static_cast<std::size_t>(operation_.signature.count) * element_bytes();
  }

  /// The bytes of some elements of the input or output.
  std::span<const std::byte> input(const element_range& range) const {
    return part(operation_.input.bytes(), range);
  }
  std::span<std::byte> output(const element_range& range) const;

  /// Tells the next member which call this one makes. Needed in calls in which not every member receives a
  /// message from the member before it: if members make different calls, two adjacent ones do.
  void announce_to_next();
  std::shared_ptr<const transfer> send(int to, payload which, std::uint32_t block,
                                       std::span<const std::byte> bytes);
  std::shared_ptr<const transfer> receive(int from, payload which, std::uint32_t block,
                                          std::span<std::byte> bytes);
  /// Whether all sends and receives so far are done.
  bool all_transfers_done();

 private:
  message_key key(payload which, std::uint32_t block) const;
  template <class Bytes>
  Bytes part(Bytes whole, const element_range& range) const {
    return whole.subspan(static_cast<std::size_t>(range.first) * element_bytes(),
                         static_cast<std::size_t>(range.count) * element_bytes());
  }

  message_exchange& over_;
  const group_description& group_;
  const network_sizes& sizes_;
  const collective_operation& operation_;
  std::uint64_t sequence_;
  std::deque<std::shared_ptr<const transfer>> transfers_;
};

/// A range of elements in blocks of at most network_sizes::block bytes, each of which is one message.
class blocks {
 public:
  blocks(const net_call& call, const element_range& whole)
      : whole_(whole),
        longest_(std::max<std::int64_t>(
            1, static_cast<std::int64_t>(call.sizes().block / call.element_bytes()))) {}

  std::uint32_t count() const { return static_cast<std::uint32_t>((whole_.count + longest_ - 1) / longest_); }
  element_range operator[](std::uint32_t block) const {
    auto first = block * longest_;
    return {whole_.first + first, std::min(longest_, whole_.count - first)};
  }

 private:
  element_range whole_;
  std::int64_t longest_;
};

}  // namespace troupe::collective::net
