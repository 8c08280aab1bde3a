#include "troupe/collective/shm/memory/peer_connector.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe::collective {
namespace {

constexpr std::size_t max_token_bytes = 128;
/// Accepted connections that have not sent their hello. More are accepted when there are fewer.
constexpr std::size_t max_unauthenticated = 64;
constexpr auto hello_timeout = std::chrono::seconds(5);
constexpr int longest_sleep_ms = 100;
constexpr std::uint64_t hello_magic = 0x32'65'70'75'6f'72'54;  // the first bytes of a hello

struct hello {
  std::uint64_t magic = hello_magic;
  std::uint64_t process = 0;  ///< the sender's; 0 in an answer: refused
  /// The job's, with which the process's descriptors come. In a refusal: why; empty: it is of another job.
  std::array<char, max_token_bytes> token{};
};

void refuse(int socket, const std::string& why) {
  hello refusal;
  why.copy(refusal.token.data(), refusal.token.size() - 1);
  send_packet(socket, std::as_bytes(std::span(&refusal, 1)), {});
}

template <class T>
T random_bits() {
  T bits;
  check_posix(::getrandom(&bits, sizeof bits, 0), "get random bytes");
  return bits;
}

ucred credentials_of(int socket) {
  ucred its{};
  socklen_t size = sizeof its;
  check_posix(::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &its, &size), "ask who a socket's peer is");
  return its;
}

bool is_of_this_user(int socket) { return credentials_of(socket).uid == ::geteuid(); }

bool is_readable(int fd, std::chrono::steady_clock::time_point deadline) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  pollfd waited{fd, POLLIN, 0};
  return ::poll(&waited, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0))) == 1;
}

}  // namespace

peer_connector::peer_connector(const std::string& job_token, std::array<int, most_descriptors> descriptors)
    : job_token_(job_token), descriptors_(descriptors), process_(random_bits<std::uint64_t>() | 1) {
  if (job_token.size() > max_token_bytes)
    throw_invalid("job token", "at most 128 bytes", std::to_string(job_token.size()));
  thread_ = std::thread([this] { serve(); });
}

peer_connector::~peer_connector() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  waker_.set();
  thread_.join();
}

/// Of two processes the one with the smaller number connects, the other one waits for that.
std::shared_ptr<peer_process> peer_connector::connection_to(std::uint64_t process, const std::string& address,
                                                            std::chrono::steady_clock::time_point deadline,
                                                            const std::function<void()>& check) {
  constexpr auto check_interval = std::chrono::milliseconds(20);
  std::unique_lock lock(mutex_);
  std::erase_if(peers_, [](const auto& each) { return each.second->has_ended(); });
  if (process < process_) {
    auto is_there = [&] { return peers_.contains(process) || unusable_.contains(process); };
    while (!is_there()) {
      auto now = std::chrono::steady_clock::now();
      if (now >= deadline)
        throw std::runtime_error("it did not connect to " + this->address() + " in time" +
                                 (accept_problem_.empty() ? "" : ": " + accept_problem_));
      if (peer_added_.wait_until(lock, std::min(deadline, now + check_interval), is_there)) break;
      lock.unlock();
      check();
      lock.lock();
    }
    if (auto known = peers_.find(process); known != peers_.end()) return known->second;
    throw std::runtime_error("it has connected, but " + unusable_.extract(process).mapped());
  }
  lock.unlock();
  std::lock_guard one_at_a_time(connecting_);
  lock.lock();
  if (auto known = peers_.find(process); known != peers_.end()) return known->second;
  lock.unlock();
  return connect(process, address, deadline, check);
}

namespace {

/// Waits until the listener's queue has a place.
posix::unique_fd connect_in_time(const std::string& address, std::chrono::steady_clock::time_point deadline,
                                 const std::function<void()>& check) {
  while (true) {
    if (auto made = posix::connect_privately(address)) return made;
    if (std::chrono::steady_clock::now() >= deadline)
      throw std::runtime_error(address + " did not accept connections in time: too many wait there");
    check();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

std::shared_ptr<peer_process> peer_connector::connect(std::uint64_t process, const std::string& address,
                                                      std::chrono::steady_clock::time_point deadline,
                                                      const std::function<void()>& check) {
  auto made = connect_in_time(address, deadline, check);
  if (!is_of_this_user(made.get())) throw std::runtime_error(address + " belongs to another user");
  check_posix(send_hello(made.get(), process_) ? 0 : -1, "send a hello to " + address);
  if (!is_readable(made.get(), deadline)) throw std::runtime_error(address + " did not answer in time");
  hello answer;
  auto received = receive_packet(made.get(), std::as_writable_bytes(std::span(&answer, 1)));
  if (received.lacks_descriptors) throw system_failure("receive the descriptors of " + address, EMFILE);
  if (received.size_bytes <= 0)
    throw std::runtime_error(address + " ended the connection without an answer: its process may have ended");
  if (answer.magic == hello_magic && answer.process == 0 && answer.token.front() != 0)
    throw std::runtime_error(address + " refused this process: it cannot " + answer.token.data());
  if (received.size_bytes != sizeof answer || answer.magic != hello_magic || answer.process != process ||
      !received.descriptors.back())
    throw std::runtime_error(address + " refused this process: it belongs to another job");
  return add(process, std::move(made), std::move(received.descriptors));
}

/// Sends the token, which the other side compares, and the descriptors of this process.
bool peer_connector::send_hello(int socket, std::uint64_t process) const {
  hello sent;
  sent.process = process;
  job_token_.copy(sent.token.data(), sent.token.size());
  return send_packet(socket, std::as_bytes(std::span(&sent, 1)), descriptors_) >= 0;
}

std::shared_ptr<peer_process> peer_connector::add(
    std::uint64_t process, posix::unique_fd socket,
    std::array<posix::unique_fd, most_descriptors> descriptors) {
  auto pid = credentials_of(socket.get()).pid;
  posix::unique_fd process_fd(static_cast<int>(check_posix(
      ::syscall(SYS_pidfd_open, pid, 0), "watch process " + std::to_string(pid) + " of this host")));
  auto added = std::make_shared<peer_process>(process, std::move(socket), std::move(process_fd),
                                              std::move(descriptors[0]), descriptors[1]);
  {
    std::lock_guard lock(mutex_);
    peers_[process] = added;
    peer_added_.notify_all();
  }
  waker_.set();
  return added;
}

void peer_connector::serve() {
  while (true) {
    std::vector<std::shared_ptr<peer_process>> watched;
    {
      std::lock_guard lock(mutex_);
      if (ending_) return;
      for (const auto& [process, each] : peers_)
        if (!each->has_ended()) watched.push_back(each);
    }
    bool can_accept = std::exchange(can_accept_, true) && unauthenticated_.size() < max_unauthenticated;
    std::vector<pollfd> polled{{waker_.fd(), POLLIN, 0}, {can_accept ? listener_.fd() : -1, POLLIN, 0}};
    for (const auto& each : unauthenticated_) polled.push_back({each.socket.get(), POLLIN, 0});
    auto first_process = static_cast<std::ptrdiff_t>(polled.size());
    for (const auto& each : watched) polled.push_back({each->process_fd(), POLLIN, 0});
    ::poll(polled.data(), polled.size(), longest_sleep_ms);
    waker_.clear();
    auto oldest_allowed = std::chrono::steady_clock::now() - hello_timeout;
    std::erase_if(unauthenticated_, [&](pending_connection& each) {
      return authenticate(each.socket) || each.since < oldest_allowed;
    });
    if (polled[1].revents != 0) accept_waiting();
    std::vector<bool> ended;
    std::for_each(polled.begin() + first_process, polled.end(),
                  [&](const pollfd& each) { ended.push_back(each.revents != 0); });
    report_ended(watched, ended);
  }
}

void peer_connector::accept_waiting() {
  // Those of other users, whom an abstract name lets in, are closed at once. Others are served in between.
  constexpr int most_at_a_time = 1024;
  for (int i = 0; i < most_at_a_time && unauthenticated_.size() < max_unauthenticated; ++i) {
    posix::unique_fd accepted(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    // Without free descriptors the listener stays readable; it is polled again after one sleep.
    note_accepting(accepted ? 0 : errno);
    if (!accepted) return;
    if (is_of_this_user(accepted.get()))
      unauthenticated_.push_back({std::move(accepted), std::chrono::steady_clock::now()});
  }
}

void peer_connector::note_accepting(int error_number) {
  can_accept_ = error_number == 0 || error_number == EAGAIN;
  std::lock_guard lock(mutex_);
  accept_problem_ = can_accept_ ? "" : system_failure("accept connections", error_number).what();
}

void peer_connector::note_unusable(std::uint64_t process, const std::string& why) {
  std::lock_guard lock(mutex_);
  unusable_[process] = why;
  peer_added_.notify_all();
}

/// Checks the hello of an accepted connection and answers it. False: it has not come yet.
bool peer_connector::authenticate(posix::unique_fd& connection) {
  hello received;
  auto packet = receive_packet(connection.get(), std::as_writable_bytes(std::span(&received, 1)));
  if (packet.size_bytes < 0 && errno == EAGAIN) return false;
  std::array<char, max_token_bytes> token{};
  job_token_.copy(token.data(), token.size());
  bool is_of_job =
      packet.size_bytes == sizeof received && received.magic == hello_magic && received.token == token;
  if (is_of_job && packet.lacks_descriptors) {
    refuse(connection.get(), "take descriptors, since it has too many open. Raise its limit with ulimit -n");
    note_unusable(received.process, system_failure("its descriptors cannot be taken", EMFILE).what());
    return true;
  }
  if (!is_of_job || !packet.descriptors.back()) {
    refuse(connection.get(), {});
    return true;
  }
  try {
    check_posix(send_hello(connection.get(), process_) ? 0 : -1, "answer it");
    add(received.process, std::move(connection), std::move(packet.descriptors));
  } catch (const std::exception& problem) {  // it cannot be watched, or its memory not be mapped
    note_unusable(received.process, problem.what());
  }
  return true;
}

void peer_connector::report_ended(const std::vector<std::shared_ptr<peer_process>>& watched,
                                  const std::vector<bool>& ended) {
  bool any = false;
  for (std::size_t i = 0; i < watched.size(); ++i)
    if (ended[i]) {
      watched[i]->set_ended();
      any = true;
    }
  std::lock_guard lock(mutex_);
  if (any)
    for (const auto& on_end : watches_) on_end();
}

peer_connector::watch::watch(peer_connector& connector, std::function<void()> on_end)
    : connector_(connector) {
  std::lock_guard lock(connector_.mutex_);
  place_ = connector_.watches_.insert(connector_.watches_.end(), std::move(on_end));
}

peer_connector::watch::~watch() {
  std::lock_guard lock(connector_.mutex_);
  connector_.watches_.erase(place_);
}

}  // namespace troupe::collective
