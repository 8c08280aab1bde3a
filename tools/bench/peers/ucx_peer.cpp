#include "bench/peers/ucx_peer.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "bench/processes/run_captured.hpp"
#include "child_process.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

/// Those of the transport between processes of one host.
constexpr const char* transports_of_a_job = "sysv,cma";
constexpr int most_attempts = 20;

/// A port that is free now. Someone else may take it meanwhile: then this measurement is not made.
std::string free_port() {
  unique_fd probe(
      static_cast<int>(check_posix(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "make a socket")));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  check_posix(::bind(probe.get(), any, length), "bind a socket to any port");
  check_posix(::getsockname(probe.get(), any, &length), "read a socket's port");
  return std::to_string(::ntohs(address.sin_port));
}

/// The last line of `ucx_perftest -f` is numbers: iterations, median, mean since the line before, mean, MB/s
/// since the line before, MB/s; MB are 2^20 bytes.
std::optional<ucx_figures> figures_in(const std::string& output) {
  std::istringstream stream(output);
  std::string last;
  for (std::string line; std::getline(stream, line);)
    if (line.find_first_not_of(" ") != std::string::npos) last = line;
  std::istringstream numbers(last);
  double iterations = 0, median = 0, recent_mean = 0, mean = 0, recent_rate = 0, rate = 0;
  if (!(numbers >> iterations >> median >> recent_mean >> mean >> recent_rate >> rate)) return {};
  return ucx_figures{median, mean, rate * (1 << 20) / 1e9};
}

}  // namespace

bool has_ucx_perftest() {
  try {
    find_program("ucx_perftest");
    return true;
  } catch (const bad_input&) {
    return false;
  }
}

std::optional<ucx_figures> run_ucx_perftest(const ucx_test& test) {
  std::vector<std::string> surroundings = {
      "UCX_TLS=" + (test.transports.empty() ? transports_of_a_job : test.transports), "UCX_NET_DEVICES=lo",
      "UCX_WARN_UNUSED_ENV_VARS=n"};
  auto port = free_port();
  std::vector<std::string> server = {"ucx_perftest", "-p", port};
  if (test.sleeps) server.insert(server.end(), {"-E", "sleep"});
  child_process answering({find_program("ucx_perftest"), server, environment_with(surroundings)});
  auto output = answering.take_output(), errors = answering.take_errors();
  auto client = server;
  client.insert(client.end(), {"127.0.0.1", "-t", test.name, "-f", "-s", std::to_string(test.size_bytes),
                               "-n", std::to_string(test.iterations)});
  // It says nothing when it listens.
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    auto seen = run_captured(client, surroundings);
    if (auto figures = figures_in(seen.output)) return figures;
  }
  return {};
}

}  // namespace troupe::bench
