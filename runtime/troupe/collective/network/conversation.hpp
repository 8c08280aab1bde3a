#pragma once
#include <deque>
#include <memory>
#include <span>

#include "troupe/collective/group.hpp"
#include "troupe/collective/network/exchange.hpp"
#include "troupe/collective/network/network_sizes.hpp"
#include "troupe/collective/share.hpp"

namespace troupe::network {

/// What a message within a call carries: together with the number of a block, its step.
enum class carried : std::uint32_t { inputs, results, arrivals };
constexpr std::uint32_t num_carried = 3;

/// One member's part in one call: the messages it exchanges with the others.
class conversation {
 public:
  conversation(exchange& over, const group_description& group, const network_sizes& sizes,
               const collective_operation& what, std::uint64_t sequence);

  const collective_operation& what() const { return what_; }
  const network_sizes& sizes() const { return sizes_; }
  int member() const { return group_.member; }
  int num_members() const { return group_.size(); }
  /// The member `distance` after this one.
  int after(int distance) const;
  std::size_t element_bytes() const { return size_bytes(what_.signature.type); }
  std::size_t whole_bytes() const {
    return static_cast<std::size_t>(what_.signature.count) * element_bytes();
  }

  /// Where elements lie in a tensor.
  std::span<const std::byte> input(const share& which) const { return part(what_.input.bytes(), which); }
  std::span<std::byte> output(const share& which) const;

  /// Tells the next member what this one calls, in calls where not everybody hears from the one before: so
  /// members that differ are always noticed, since then two neighbours differ.
  void introduce();
  std::shared_ptr<const transfer> send(int to, carried which, std::uint32_t block,
                                       std::span<const std::byte> bytes);
  std::shared_ptr<const transfer> receive(int from, carried which, std::uint32_t block,
                                          std::span<std::byte> bytes);
  /// Whether all that was sent and received so far is done.
  bool all_done();

 private:
  message_key key(carried which, std::uint32_t block) const;
  template <class Bytes>
  Bytes part(Bytes whole, const share& which) const {
    return whole.subspan(static_cast<std::size_t>(which.first) * element_bytes(),
                         static_cast<std::size_t>(which.count) * element_bytes());
  }

  exchange& over_;
  const group_description& group_;
  const network_sizes& sizes_;
  const collective_operation& what_;
  std::uint64_t sequence_;
  std::deque<std::shared_ptr<const transfer>> under_way_;
};

}  // namespace troupe::network
