#pragma once
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "troupe/messaging/outgoing_stream.hpp"
#include "troupe/transport/plane.hpp"
#include "troupe/transport/transport.hpp"
#include "troupe/transport/ucx_transport/incoming_connections.hpp"

namespace troupe::transport {

/// Sends and receives the control messages of a process, over plain TCP sockets, as long as the process
/// lives. Every pair of processes has one connection per direction, opened by the sender, so that whichever
/// side dies, the other side's sending connection breaks. (Not UCX: if a peer dies while UCX 1.13 connects to
/// it over TCP, assertions in UCX abort the survivor.)
///
/// A connection starts with a handshake (messaging/handshake.hpp), which proves that both sides know the
/// secret and derives the connection's key, then an introduction frame that names both processes. Anything
/// else closes the connection. Not thread-safe: the transport serialises all calls. Arrived messages are
/// collected for take_arrivals(), not delivered by callbacks.
class control_plane {
 public:
  /// Listens on `interface`. Throws bad_input and system_failure. `settings` must outlive it.
  control_plane(const std::string& interface, plane_settings& settings);

  std::vector<std::byte> address() const { return encode_control_address(incoming_.address()); }
  /// Readable when progress() has something to do.
  int event_fd() const { return watch_.fd(); }
  /// Whether anything was done.
  bool progress();
  /// False: there are arrivals or failures to take, so do not sleep.
  bool arm() const { return !incoming_.has_arrivals() && failures_.empty(); }
  /// Whether a connection attempt is due soon, for which event_fd() does not become readable.
  bool is_reconnecting() const { return is_reconnecting_; }

  /// Connects to `peers` and closes all other connections. A working connection to the same address is kept.
  void connect(const std::map<int, process_address>& peers);
  /// Returns false if the progress thread must act (a failure). A message to a peer without connection is
  /// dropped.
  bool send(int to_rank, std::uint64_t generation, std::span<const std::byte> body);
  /// Tells all connected peers that this process ends the generations before `generation`. Sent before what
  /// follows on each connection. Returns as send().
  bool announce_generation(std::uint64_t generation);
  bool all_sent() const;

  std::vector<control_arrival> take_arrivals() { return incoming_.take_arrivals(); }
  /// What peers have announced since the last call.
  std::vector<generation_notice> take_notices() { return incoming_.take_notices(); }
  /// The peers that broke since the last call, each connection at most once.
  std::vector<peer_failure> take_failures() { return std::exchange(failures_, {}); }
  /// Closes the connections with a peer that misbehaved, and adds it to the failures unless it was there
  /// before.
  void break_connection(const peer_failure& failure);

 private:
  struct connection {
    std::vector<std::byte> address;
    std::unique_ptr<messaging::outgoing_stream> stream;  ///< null once it broke
    int watched = -1;                                    ///< its socket in the epoll set
  };

  void open(int rank, const std::vector<std::byte>& address);
  void on_ready(int rank, bool hung_up);
  void watch(int rank, connection& opened);
  void reconnect();
  void report(const peer_failure& failure);

  plane_settings& settings_;
  posix::epoll_set watch_;
  incoming_connections incoming_;
  std::map<int, connection> connections_;
  std::map<int, int> rank_of_socket_;
  bool is_reconnecting_ = false;
  std::vector<peer_failure> failures_;
};

}  // namespace troupe::transport
