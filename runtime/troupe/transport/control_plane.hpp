#pragma once
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "troupe/transport/plane.hpp"
#include "troupe/transport/ucx_worker.hpp"
#include "troupe/wire/frame.hpp"

namespace troupe {

/// The control messages of a process for as long as it lives: one connection to each peer, over TCP, where
/// UCX notices that a peer broke. Not thread-safe: the transport serialises all calls. What arrives is
/// collected and never delivered from inside.
class control_plane {
 public:
  /// Throws ucx_error. `settings` must outlive it.
  control_plane(ucp_context_h context, plane_settings& settings);
  /// Waits for nobody.
  ~control_plane();
  control_plane(const control_plane&) = delete;
  control_plane& operator=(const control_plane&) = delete;

  ucx_worker& worker() { return *worker_; }
  /// Makes the connections `peers` and no others. One that is whole and has the same address is kept.
  void connect(const std::map<int, node_address>& peers);
  /// Whether it was done at once; if not, the progress thread must be awake. A peer without a connection:
  /// dropped.
  bool send(int to_rank, std::uint64_t generation, std::span<const std::byte> body);
  bool all_sent() const { return in_flight_.empty(); }

  bool has_collected() const { return !arrivals_.empty() || !broken_.empty() || !failures_.empty(); }
  std::vector<control_arrival> take_arrivals() { return std::exchange(arrivals_, {}); }
  /// The peers that broke since the last call, each connection at most once.
  std::vector<peer_failure> take_failures();
  /// Closes the connection to a peer that misbehaved elsewhere. It shows among the failures unless it did
  /// before.
  void break_connection(const peer_failure& failure);

 private:
  struct connection {
    control_plane* plane = nullptr;
    int rank = 0;
    std::vector<std::byte> address;
    ucp_ep_h endpoint = nullptr;  ///< null once it broke
    std::uint64_t sequence = 0;
  };
  struct message {
    control_plane* plane = nullptr;
    std::vector<std::byte> head;
    std::vector<std::byte> body;
    std::list<message>::iterator self;
  };
  static ucs_status_t on_frame(void* self, const void* head, std::size_t head_bytes, void* body,
                               std::size_t body_bytes, const ucp_am_recv_param_t* param);
  static void on_broken(void* connection, ucp_ep_h endpoint, ucs_status_t status);
  static void on_sent(void* request, ucs_status_t status, void* message);

  void receive(std::span<const std::byte> head, std::span<const std::byte> body, ucp_ep_h sender);
  void refuse(ucp_ep_h sender, const std::string& cause);
  void open(int rank, const std::vector<std::byte>& address);
  void close(connection& broken);
  void close_broken();

  plane_settings& settings_;
  std::unique_ptr<ucx_worker> worker_;
  bool stopping_ = false;
  std::map<int, connection> connections_;
  std::list<message> in_flight_;
  std::vector<control_arrival> arrivals_;
  std::vector<peer_failure> broken_;  ///< to be closed, when UCX is not in the middle of a callback
  std::vector<peer_failure> failures_;
};

}  // namespace troupe
