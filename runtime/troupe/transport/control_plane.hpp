#pragma once
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "troupe/transport/control_stream.hpp"
#include "troupe/transport/plane.hpp"

namespace troupe {

/// The control messages of a process for as long as it lives, over TCP sockets of our own: a connection in
/// each direction between any two nodes, made by its sender, so that whichever side dies, the other's sending
/// end shows it. (Not UCX: when a peer dies while UCX 1.13 connects to it over TCP, assertions in UCX abort
/// the survivor.) A connection begins with a greeting that proves knowledge of the secret and names both
/// processes; whoever sends anything else loses the connection. Not thread-safe: the transport serialises all
/// calls. What arrives is collected and never delivered from inside.
class control_plane {
 public:
  /// Listens on `interface`. Throws bad_input and system_failure. `settings` must outlive it.
  control_plane(const std::string& interface, plane_settings& settings);

  std::vector<std::byte> address() const { return encode_control_address(listener_.address); }
  /// Readable when progress() has something to do.
  int event_fd() const { return epoll_.get(); }
  /// Whether anything was done.
  bool progress();
  /// False: something was collected, so do not sleep.
  bool arm() const { return arrivals_.empty() && failures_.empty(); }

  /// Makes the connections to `peers` and to no others. One that is whole and has the same address is kept.
  void connect(const std::map<int, node_address>& peers);
  /// Whether all is well; if not, the progress thread must look. A peer without a connection: dropped.
  bool send(int to_rank, std::uint64_t generation, std::span<const std::byte> body);
  bool all_sent() const;

  std::vector<control_arrival> take_arrivals() { return std::exchange(arrivals_, {}); }
  /// The peers that broke since the last call, each connection at most once.
  std::vector<peer_failure> take_failures() { return std::exchange(failures_, {}); }
  /// Closes the connections with a peer that misbehaved. It shows among the failures unless it did before.
  void break_connection(const peer_failure& failure);

 private:
  struct connection {
    std::vector<std::byte> address;
    std::unique_ptr<outgoing_stream> stream;  ///< none once it broke
  };
  using incoming_map = std::map<int, incoming_stream>;  ///< by socket

  void open(int rank, const std::vector<std::byte>& address);
  void greet(int rank, const control_address& peer, outgoing_stream& stream);
  void look_at(int rank, bool hung_up);
  void report(const peer_failure& failure);
  void watch(int socket, std::uint32_t events, bool is_new);
  void accept_some();
  void read(incoming_stream& stream);
  bool receive_all(incoming_stream& stream);
  std::optional<std::string> receive(incoming_stream& stream, const incoming_stream::frame& frame);
  std::optional<std::string> receive_greeting(incoming_stream& stream, const frame_head& head);
  void refuse(const incoming_stream& stream, const std::string& cause);
  void limit_strangers();
  void drop_incoming(const std::map<int, process_id>& members);
  void replace_incoming(const incoming_stream& newer);

  plane_settings& settings_;
  control_listener listener_;
  unique_fd epoll_;
  std::map<int, connection> connections_;
  std::map<int, int> rank_of_socket_;
  incoming_map incoming_;
  std::uint64_t accepted_ = 0;
  std::vector<control_arrival> arrivals_;
  std::vector<peer_failure> failures_;
};

}  // namespace troupe
