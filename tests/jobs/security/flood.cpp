#include "jobs/security/flood.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include <deque>
#include <fstream>
#include <set>
#include <sstream>

#include "troupe/error/errors.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe::testing {
namespace {

/// At each port, so that there are more than a listener bears.
constexpr std::size_t most_at_once = 150;
/// For new ports.
constexpr int rounds_between_looks = 10;

/// Of IPv4, in this thread's network namespace.
std::set<std::uint16_t> listening_ports() {
  std::set<std::uint16_t> ports;
  std::ifstream table("/proc/thread-self/net/tcp");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string number, local, remote, state;
    fields >> number >> local >> remote >> state;
    if (state == "0A")
      ports.insert(static_cast<std::uint16_t>(std::stoul(local.substr(local.find(':') + 1), nullptr, 16)));
  }
  return ports;
}

posix::unique_fd call(std::uint16_t port) {
  posix::unique_fd made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  ::connect(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return made;
}

}  // namespace

port_flood::port_flood(const std::string& network) : thread_([this, network] { run(network); }) {}

port_flood::~port_flood() {
  stop_ = true;
  thread_.join();
}

void port_flood::run(const std::string& network) {
  auto path = "/run/netns/" + network;
  posix::unique_fd place(
      static_cast<int>(check_posix(::open(path.c_str(), O_RDONLY | O_CLOEXEC), "open " + path)));
  check_posix(::setns(place.get(), CLONE_NEWNET), "enter " + path);
  std::deque<posix::unique_fd> connections;
  while (!stop_) {
    auto ports = listening_ports();
    for (int round = 0; round < rounds_between_looks; ++round)
      for (auto port : ports) {
        connections.push_back(call(port));
        ++num_connections_;
      }
    while (connections.size() > most_at_once * ports.size()) connections.pop_front();
    std::this_thread::yield();
  }
}

}  // namespace troupe::testing
