#include "bench/peers/ucx_perftest.hpp"

#include <chrono>
#include <sstream>
#include <thread>
#include <vector>

#include "bench/processes/subprocess.hpp"
#include "child_process.hpp"
#include "troupe/messaging/tcp_socket.hpp"

namespace troupe::bench {
namespace {

/// Those of the transport between processes of one host.
constexpr const char* transports_of_a_job = "sysv,cma";
constexpr int most_attempts = 20;

/// The last line of `ucx_perftest -f` is numbers: iterations, median, mean since the line before, mean, MB/s
/// since the line before, MB/s; MB are 2^20 bytes.
std::optional<ucx_perftest_result> result_in(const std::string& output) {
  std::istringstream stream(output);
  std::string last;
  for (std::string line; std::getline(stream, line);)
    if (line.find_first_not_of(" ") != std::string::npos) last = line;
  std::istringstream numbers(last);
  double iterations = 0, median = 0, recent_mean = 0, mean = 0, recent_rate = 0, rate = 0;
  if (!(numbers >> iterations >> median >> recent_mean >> mean >> recent_rate >> rate)) return {};
  return ucx_perftest_result{median, mean, rate * (1 << 20) / 1e9};
}

}  // namespace

std::optional<ucx_perftest_result> run_ucx_perftest(const ucx_perftest_options& options) {
  if (!why_missing("ucx_perftest", "ucx-utils").empty()) return {};
  std::vector<std::string> environment = {
      "UCX_TLS=" + (options.transports.empty() ? transports_of_a_job : options.transports),
      "UCX_NET_DEVICES=lo", "UCX_WARN_UNUSED_ENV_VARS=n"};
  // Another program may take the port before the server does: then nothing is measured.
  auto port = std::to_string(messaging::local_port(messaging::listen_on("127.0.0.1", 0)));
  std::vector<std::string> server = {"ucx_perftest", "-p", port};
  if (options.sleeps) server.insert(server.end(), {"-E", "sleep"});
  child_process answering({find_program("ucx_perftest"), server, environment_with(environment)});
  auto output = answering.take_output(), errors = answering.take_errors();
  auto client = server;
  client.insert(client.end(), {"127.0.0.1", "-t", options.test, "-f", "-s",
                               std::to_string(options.size_bytes), "-n", std::to_string(options.iterations)});
  // The server does not say when it listens.
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (auto result = result_in(run_process(client, environment).output)) return result;
  }
  return {};
}

}  // namespace troupe::bench
