#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "troupe/collective/post_mortem.hpp"
#include "troupe/collective/ucx/call_log.hpp"
#include "troupe/collective/ucx/heard_of.hpp"
#include "troupe/collective/ucx/ucx_connections.hpp"

namespace troupe {

/// The messages of one member of a group: brings those of calls to whoever waits for them, keeps those that
/// come early, holds all of them to what this member calls, and remembers what was heard of whom. Not
/// thread-safe; callbacks run within progress().
class ucx_exchange final : public network::exchange, private ucx_connections::listener {
 public:
  struct callbacks {
    /// Answers a question.
    std::function<last_words()> describe = nullptr;
    /// A member gave up.
    std::function<void(int from, const last_words& why)> on_giving_up = nullptr;
  };

  /// `group` outlives it. Throws ucx_error.
  ucx_exchange(ucp_context_h context, const group_description& group, callbacks hooks);

  std::vector<std::byte> address() const { return connections_.address(); }
  /// `group_number`: the same on all members. `addresses` by member.
  void connect(std::uint64_t group_number, const std::vector<std::string>& addresses);

  void begin_call(std::uint64_t sequence, const call_signature& signature) override;
  std::shared_ptr<const network::transfer> post_send(int to, const network::message_key& key,
                                                     const call_signature& signature,
                                                     std::span<const std::byte> bytes) override;
  std::shared_ptr<const network::transfer> post_receive(int from, const network::message_key& key,
                                                        const call_signature& expected,
                                                        std::span<std::byte> bytes) override;
  void post_note(int to, std::uint64_t sequence, const call_signature& signature) override;
  /// To everyone who can be reached: a message that no call waits for.
  void tell_all(message_kind kind, const std::string& text = {});
  void forget_answers();

  /// Whether anything was done. Throws collective_error (mismatch) when members are seen to differ.
  bool progress() { return connections_.progress(); }
  ucx_connections& connections() { return connections_; }

  const heard_of& heard(int member) const { return peers_[static_cast<std::size_t>(member)].heard; }
  const call_log& calls() const { return calls_; }

 private:
  using message = ucx_message;
  struct arrival {
    message_header header;
    std::vector<std::byte> bytes;
    void* descriptor = nullptr;  ///< of one that is fetched when it is wanted
    std::size_t announced = 0;   ///< its bytes
    std::span<const std::byte> body() const { return {descriptor ? nullptr : bytes.data(), announced}; }
  };
  struct peer {
    heard_of heard;
    std::map<network::message_key, std::shared_ptr<message>> posted;
    std::map<network::message_key, arrival> arrived;
  };

  bool on_message(const message_header& header, std::span<const std::byte> body, void* descriptor) override;
  void on_done(ucx_message& done) override;
  void on_lost(int member, const std::string& cause) override;

  void note_call(peer& of, const message_header& header);
  bool take_elements(peer& from, const message_header& header, std::span<const std::byte> body,
                     void* descriptor);
  /// `body`: its bytes, or how many `descriptor` fetches.
  void deliver(const std::shared_ptr<message>& into, const message_header& header,
               std::span<const std::byte> body, void* descriptor);
  void tell(int member, message_kind kind, const std::string& text);
  std::shared_ptr<message> message_of_call(int peer, const network::message_key& key,
                                           const call_signature& signature);
  message_header header(message_kind kind) const;
  void require_like(const message_header& theirs, const call_signature& own) const;

  const group_description& group_;
  callbacks hooks_;
  std::uint64_t group_number_ = 0;
  std::vector<peer> peers_;  ///< by member
  call_log calls_;
  ucx_connections connections_;  // ends first
};

}  // namespace troupe
