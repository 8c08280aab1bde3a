#include "troupe/cluster/agent_connections.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

namespace troupe::cluster {
namespace {

using namespace std::chrono_literals;

constexpr auto handshake_deadline = 5s;
constexpr std::size_t max_unauthenticated = 64;
/// Further connections are accepted in the next call, so that unauthenticated peers are read and closed in
/// between.
constexpr int max_accepted_at_once = 16;

using warning = std::function<void(const std::string& message)>;

/// Tries again while the agent's name has no address, until the job's members would have had to join.
messaging::listening listen_when_known(const agent_options& options, const warning& warn) {
  auto last = std::chrono::steady_clock::now() + options.join_timeout;
  for (bool has_warned = !warn;;) try {
      return listen_on_all(options.address, options.port, messaging::listening_for::whole_network);
    } catch (const messaging::unknown_address& unknown) {
      if (std::chrono::steady_clock::now() + messaging::between_lookups > last) throw;
      if (!std::exchange(has_warned, true)) warn(still_unknown(unknown));
      std::this_thread::sleep_for(messaging::between_lookups);
    }
}

messaging::listening listen_for_members(const agent_options& options, const warning& warn) {
  if (!options.has_other_hosts)
    return listen_on_all(options.address, options.port, messaging::listening_for::this_host);
  auto made = listen_when_known(options, warn);
  if (!made.note.empty() && warn) warn(made.note);
  return made;
}

}  // namespace

agent_connections::agent_connections(const agent_options& options, const warning& warn)
    : options_(options), listening_(listen_for_members(options, warn)) {}

void agent_connections::poll(int wake_fd, const std::function<void(agent_connection&)>& serve) {
  std::vector<pollfd> polled = {{wake_fd, POLLIN, 0}};
  for (const auto& connection : connections_) {
    int events = (connection.wants_read() ? POLLIN : 0) | (connection.wants_write() ? POLLOUT : 0);
    polled.push_back({connection.fd(), static_cast<short>(events), 0});
  }
  if (!accept_paused_)
    for (const auto& listener : listening_.sockets) polled.push_back({listener.get(), POLLIN, 0});
  accept_paused_ = false;
  auto tick = std::clamp<std::chrono::milliseconds>(options_.suspect_after / 8, 1ms, 50ms);
  if (::poll(polled.data(), polled.size(), static_cast<int>(tick.count())) <= 0) return;
  std::size_t i = 1;
  for (auto& connection : connections_) {
    auto happened = polled[i++].revents;
    if (happened & POLLOUT) connection.write();
    if (!(happened & ~POLLOUT)) continue;
    if (connection.wants_read())
      serve(connection);
    else
      connection.close();
  }
  for (; i < polled.size(); ++i)
    if (polled[i].revents) accept_some(polled[i].fd);
}

void agent_connections::accept_some(int listener) {
  for (int left = max_accepted_at_once; left > 0; --left) {
    posix::unique_fd made(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!made) {
      // Without descriptors the listener would stay readable: accept again after a tick.
      accept_paused_ = errno != EAGAIN && errno != ECONNABORTED && errno != EINTR;
      out_of_descriptors_ = accept_paused_;
      return;
    }
    int on = 1;
    ::setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    make_space_for_unauthenticated();
    connections_.emplace_back(std::move(made), options_.secret, std::chrono::steady_clock::now());
  }
}

/// Closes the oldest unauthenticated connection if there are too many. The limit lets all processes of the
/// job connect at once.
void agent_connections::make_space_for_unauthenticated() {
  auto is_unauthenticated = [](const agent_connection& c) { return !c.authenticated() && !c.closed(); };
  auto count = static_cast<std::size_t>(std::ranges::count_if(connections_, is_unauthenticated));
  if (count < max_unauthenticated + static_cast<std::size_t>(options_.world_size)) return;
  connections_.erase(std::ranges::find_if(connections_, is_unauthenticated));
}

std::list<agent_connection> agent_connections::take_ended() {
  auto now = std::chrono::steady_clock::now();
  std::list<agent_connection> ended;
  for (auto next = connections_.begin(); next != connections_.end();) {
    auto it = next++;
    bool too_late = !it->peer && now - it->opened() > handshake_deadline;
    if (too_late || it->closed()) ended.splice(ended.end(), connections_, it);
  }
  return ended;
}

void agent_connections::drop(int rank) {
  connections_.remove_if([&](const agent_connection& c) { return c.peer && c.peer->rank == rank; });
}

}  // namespace troupe::cluster
