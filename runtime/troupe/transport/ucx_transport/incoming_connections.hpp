#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "troupe/messaging/incoming_stream.hpp"
#include "troupe/posix/sockets/epoll_set.hpp"
#include "troupe/transport/plane.hpp"

namespace troupe::transport {

/// The listening socket of a process and the control connections accepted from it. Not thread-safe.
///
/// A connection belongs to an unauthenticated peer until its handshake has succeeded and its introduction
/// has arrived. Such peers are limited in number (the oldest is closed), in time (some seconds) and in the
/// bytes read from them.
class incoming_connections {
 public:
  /// Listens on `interface`. Throws bad_input and system_failure. `settings` and `watch` must outlive it.
  incoming_connections(const std::string& interface, plane_settings& settings, posix::epoll_set& watch);

  const messaging::control_address& address() const { return listener_.address; }
  /// `socket` is ready; sockets of other owners are ignored.
  void look_at(int socket);
  /// Closes unauthenticated connections that exceed their time limit, and resumes accepting. Call it
  /// periodically.
  void keep_time();
  /// Closes the connections of a member.
  void drop(int rank);
  /// Closes connections of processes that are no members any more (replaced by a new incarnation).
  void keep_only(const std::map<int, messaging::process_id>& members);

  bool has_arrivals() const { return !arrivals_.empty(); }
  std::vector<control_arrival> take_arrivals() { return std::exchange(arrivals_, {}); }
  /// The notices that came since the last call.
  std::vector<generation_notice> take_notices() { return std::exchange(notices_, {}); }
  /// The members that sent bad frames since the last call.
  std::vector<peer_failure> take_failures() { return std::exchange(failures_, {}); }

 private:
  using clock = std::chrono::steady_clock;
  using stream_map = std::map<int, messaging::incoming_stream>;  ///< key: the socket

  void accept_some();
  void pause_accepting();
  void make_space_for_unauthenticated();
  void end_oldest_unauthenticated();
  void read_unauthenticated(stream_map::iterator peer);
  void read_member(stream_map::iterator member);
  bool receive_all(messaging::incoming_stream& stream);
  std::optional<std::string> receive(messaging::incoming_stream& stream,
                                     const messaging::incoming_stream::frame& frame);
  std::optional<std::string> receive_introduction(messaging::incoming_stream& stream,
                                                  const messaging::frame_head& head);
  void replace(const messaging::incoming_stream& newer);

  plane_settings& settings_;
  posix::epoll_set& watch_;
  messaging::control_listener listener_;
  std::optional<clock::time_point> accept_again_;  ///< when accepting is paused
  stream_map unauthenticated_, members_;
  std::size_t num_members_ = 0;
  std::vector<control_arrival> arrivals_;
  std::vector<generation_notice> notices_;
  std::vector<peer_failure> failures_;
};

}  // namespace troupe::transport
