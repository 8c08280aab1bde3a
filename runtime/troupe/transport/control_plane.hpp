#pragma once
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "troupe/transport/incoming_connections.hpp"
#include "troupe/transport/outgoing_stream.hpp"
#include "troupe/transport/plane.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe {

/// The control messages of a process for as long as it lives, over TCP sockets of our own: a connection in
/// each direction between any two nodes, made by its sender, so that whichever side dies, the other's sending
/// end shows it. (Not UCX: when a peer dies while UCX 1.13 connects to it over TCP, assertions in UCX abort
/// the survivor.) A connection begins with a handshake that proves knowledge of the secret to both sides and
/// makes the connection's key, then an introduction that names both processes; whoever sends anything else
/// loses the connection. Not thread-safe: the transport serialises all calls. What arrives is collected and
/// never delivered from inside.
class control_plane {
 public:
  /// Listens on `interface`. Throws bad_input and system_failure. `settings` must outlive it.
  control_plane(const std::string& interface, plane_settings& settings);

  std::vector<std::byte> address() const { return encode_control_address(incoming_.address()); }
  /// Readable when progress() has something to do.
  int event_fd() const { return watch_.fd(); }
  /// Whether anything was done.
  bool progress();
  /// False: something was collected, so do not sleep.
  bool arm() const { return !incoming_.has_arrivals() && failures_.empty(); }
  /// Whether some connection is to be tried again soon, which event_fd() does not show.
  bool is_reconnecting() const { return is_reconnecting_; }

  /// Makes the connections to `peers` and to no others. One that is whole and has the same address is kept.
  void connect(const std::map<int, node_address>& peers);
  /// Whether all is well; if not, the progress thread must look. A peer without a connection: dropped.
  bool send(int to_rank, std::uint64_t generation, std::span<const std::byte> body);
  bool all_sent() const;

  std::vector<control_arrival> take_arrivals() { return incoming_.take_arrivals(); }
  /// The peers that broke since the last call, each connection at most once.
  std::vector<peer_failure> take_failures() { return std::exchange(failures_, {}); }
  /// Closes the connections with a peer that misbehaved. It shows among the failures unless it did before.
  void break_connection(const peer_failure& failure);

 private:
  struct connection {
    std::vector<std::byte> address;
    std::unique_ptr<outgoing_stream> stream;  ///< none once it broke
    int watched = -1;                         ///< the socket that is
  };

  void open(int rank, const std::vector<std::byte>& address);
  void look_at(int rank, bool hung_up);
  void watch(int rank, connection& what);
  void reconnect();
  void report(const peer_failure& failure);

  plane_settings& settings_;
  socket_watch watch_;
  incoming_connections incoming_;
  std::map<int, connection> connections_;
  std::map<int, int> rank_of_socket_;
  bool is_reconnecting_ = false;
  std::vector<peer_failure> failures_;
};

}  // namespace troupe
