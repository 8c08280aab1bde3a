#include "bench/inspector/page_reader.hpp"

#include <poll.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "bench/measure/step_clock.hpp"
#include "troupe/http/http_client.hpp"
#include "troupe/messaging/tcp_socket.hpp"

namespace troupe::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds page_interval = 1s;
constexpr std::array page_parts = {"job",      "processes", "devices",  "actors", "links",
                                   "timeline", "snapshots", "findings", "plan"};

/// Sleeps, unless the thread is to stop.
void pause_for(std::chrono::milliseconds time, const std::stop_token& stopped) {
  auto end = std::chrono::steady_clock::now() + time;
  while (!stopped.stop_requested() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(10ms);
}

}  // namespace

page_reader::page_reader(std::uint16_t port, std::string token)
    : port_(port),
      token_(std::move(token)),
      asking_([this](const std::stop_token& stopped) { ask(stopped); }),
      following_([this](const std::stop_token& stopped) { follow_events(stopped); }) {}

page_answers page_reader::finish() {
  asking_.request_stop();
  following_.request_stop();
  asking_.join();
  following_.join();
  if (problem_) std::rethrow_exception(problem_);
  if (found_.answers.empty()) throw std::runtime_error("the job's inspector has not answered once");
  return std::move(found_);
}

void page_reader::ask(const std::stop_token& stopped) try {
  http::http_client client({.port = port_, .timeout = 30s});
  std::uint64_t newest_step = 0;
  auto read = [&](const std::string& path) {
    auto begin_s = step_moment::now().wall_s;
    auto answer = client.get("/api/v1/" + path, {{"Authorization", "Bearer " + token_}});
    if (answer.status != 200)
      throw std::runtime_error("/api/v1/" + path + " answered " + std::to_string(answer.status) + ": " +
                               answer.body);
    auto name = path.substr(0, path.find('?'));
    found_.answers.push_back({name, begin_s, step_moment::now().wall_s - begin_s, answer.body.size()});
    return found_.newest[name] = std::move(answer.body);
  };
  while (!stopped.stop_requested()) {
    try {
      for (const auto* part : page_parts) read(part);
      auto metrics =
          nlohmann::json::parse(read("metrics?after=" + std::to_string(newest_step) + "&limit=1000"));
      if (!metrics["steps"].empty()) newest_step = metrics["steps"].back()["step"].get<std::uint64_t>();
      read("log?after=0");
    } catch (const http::http_failure&) {
      // The job has not begun to listen, or has ended.
    }
    pause_for(found_.answers.empty() ? 20ms : page_interval, stopped);
  }
} catch (...) {
  problem_ = std::current_exception();
}

void page_reader::follow_events(const std::stop_token& stopped) const {
  auto text = "GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port_) +
              "\r\nAuthorization: Bearer " + token_ + "\r\n\r\n";
  while (!stopped.stop_requested()) {
    int error = 0;
    auto socket = messaging::try_connect("127.0.0.1", port_, 1s, error);
    if (!socket) {
      pause_for(20ms, stopped);
      continue;
    }
    std::vector<std::byte> request(text.size()), events;
    for (std::size_t i = 0; i < text.size(); ++i) request[i] = static_cast<std::byte>(text[i]);
    messaging::write_available(socket.get(), request);
    while (!stopped.stop_requested()) {
      if (!messaging::wait_for(socket.get(), POLLIN, 100ms)) continue;
      events.clear();
      if (messaging::read_available(socket.get(), events, std::size_t{1} << 16) ==
          messaging::io_result::closed)
        break;
    }
  }
}

}  // namespace troupe::bench
