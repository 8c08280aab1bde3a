// Clients without the token attack the inspector of a job that trains. They are refused, they cost a bounded
// amount of memory and descriptors, and others are served meanwhile. The job ends with the bits of a job that
// nobody watches.
#include <sys/resource.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "jobs/inspection/paced_job.hpp"
#include "support/counts_memory.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::vector<std::string> changing_methods = {"POST",    "PUT",   "PATCH",   "DELETE",
                                                   "OPTIONS", "TRACE", "PROPFIND"};

/// All that the API lists, and what would change the job.
std::vector<std::string> all_paths(const paced_job& job) {
  std::vector<std::string> paths;
  auto index = nlohmann::json::parse(job.get("/api/v1/").body);
  for (const auto& path : index["paths"])
    if (path != "/healthz") paths.push_back(path);
  for (const char* name : {"pause", "resume", "step", "snapshot", "rebalance", "kill", "stop"})
    paths.push_back(std::string("/api/v1/control/") + name);
  return paths;
}

/// The process that serves: that of rank 0.
struct usage {
  explicit usage(int pid) {
    auto folder = std::filesystem::path("/proc") / std::to_string(pid);
    std::ifstream pages(folder / "statm");
    std::size_t total = 0, resident = 0;
    pages >> total >> resident;
    resident_bytes = resident * 4096;
    std::filesystem::directory_iterator files(folder / "fd");
    num_descriptors = static_cast<std::size_t>(std::distance(begin(files), end(files)));
  }
  std::size_t resident_bytes = 0, num_descriptors = 0;
};

void check_without_token(const paced_job& job) {
  auto wrong = job.token();
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  auto port = std::to_string(job.port());
  const std::vector<std::vector<std::string>> unauthenticated = {
      {},
      {"Authorization: Bearer " + wrong},
      {"Authorization: Bearer " + job.token().substr(1)},
      {"Authorization: Bearer"},
      {"Authorization: Basic " + job.token()},
      {"Cookie: troupe_" + port + "=" + job.token()},  // the cookie holds another secret
      {"X-Troupe-Request: 1"}};
  for (const auto& path : all_paths(job))
    for (const auto& headers : unauthenticated) {
      INFO(path << " " << (headers.empty() ? "" : headers[0]));
      CHECK(ask_http(job.port(), "GET", path, headers).status == 401);
      CHECK(ask_http(job.port(), "GET", path + "?token=" + job.token(), headers).status == 401);
    }
  CHECK(ask_http(job.port(), "POST", "/api/v1/session", {"X-Troupe-Request: 1"}).status == 401);
}

void check_foreign_pages(const paced_job& job) {
  auto own = "127.0.0.1:" + std::to_string(job.port());
  auto with = [&](const std::string& method, const std::string& lines) {
    return send_http(job.port(), method + " /api/v1/job HTTP/1.1\r\nConnection: close\r\n" + job.bearer() +
                                     "\r\n" + lines + "\r\n\r\n")
        .status;
  };
  for (const char* host : {"evil.example", "evil.example:80", "localhost.evil.example",
                           "127.0.0.1.evil.example", "", "[::1", "127.0.0.1@evil.example"}) {
    INFO(host);
    CHECK(with("GET", std::string("Host: ") + host) == 403);
  }
  CHECK(with("GET", "Host: " + own + "\r\nHost: " + own) == 400);
  CHECK(with("GET", "X: 1") == 400);  // no Host
  for (const char* origin :
       {"http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1", "file://"}) {
    INFO(origin);
    CHECK(with("GET", "Host: " + own + "\r\nOrigin: " + origin) == 403);
    CHECK(with("POST", "Host: " + own + "\r\nX-Troupe-Request: 1\r\nOrigin: " + origin) == 403);
  }
}

void check_changes(const paced_job& job) {
  for (const auto& path : all_paths(job))
    for (const auto& method : changing_methods) {
      INFO(method << " " << path);
      CHECK(ask_http(job.port(), method, path, {job.bearer()}).status == 403);
      // With it: there is nothing to be changed in a job whose start did not allow it.
      auto status = ask_http(job.port(), method, path, {job.bearer(), "X-Troupe-Request: 1"}).status;
      CHECK((status == 403 || status == 404 || status == 405));
    }
}

void check_malformed(const paced_job& job) {
  auto port = job.port();
  auto begin =
      "POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nX-Troupe-Request: 1\r\n" + job.bearer() + "\r\n";
  CHECK(send_http(port, "GET /" + std::string(20'000, 'a') + " HTTP/1.1\r\n\r\n").status == 431);
  CHECK(send_http(port, begin + "A: " + std::string(1 << 20, 'a') + "\r\n\r\n").status == 431);
  CHECK(send_http(port, begin + "Content-Length: 1000000000000\r\n\r\n").status == 413);
  CHECK(send_http(port, begin + "Transfer-Encoding: chunked\r\n\r\n2000\r\n" + std::string(0x2000, 'a'))
            .status == 413);
  for (const char* rest :
       {"Content-Length: -1\r\n\r\n", "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "no colon\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", ": empty\r\n\r\n"}) {
    INFO(rest);
    CHECK(send_http(port, begin + rest).status == 400);
  }
  for (const char* bytes :
       {"nonsense\r\n\r\n", "\x16\x03\x01\x02\x01\xfc\x03\x03\r\n\r\n", "GET / HTTP/9.9\r\n\r\n"})
    CHECK(send_http(port, bytes).status == 400);
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    std::string bytes(random() % 2000, '\0');
    for (auto& one : bytes) one = static_cast<char>(random());
    client_socket(port).send(bytes);  // and it leaves
  }
}

/// As many descriptors as this process may have.
void allow_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// 1,000 connections at once: some say nothing, some half a request, some read no stream that they asked for.
std::vector<client_socket> hold_connections(const paced_job& job) {
  allow_descriptors();
  std::vector<client_socket> held;
  for (int i = 0; i < 1000; ++i) {
    held.emplace_back(job.port());
    if (i % 3 == 1)
      held.back().send("POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000\r\n");
    if (i % 10 == 2)
      held.back().send("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n" + job.bearer() + "\r\n\r\n");
  }
  return held;
}

/// As many connections as the server has places, and more: each asks for the largest public file, again and
/// again, and reads nothing.
std::vector<client_socket> stall_answers(const paced_job& job) {
  std::string requests;
  for (int i = 0; i < 200; ++i) requests += "GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::vector<client_socket> held;
  for (int i = 0; i < 80; ++i) {
    held.emplace_back(job.port());
    held.back().send(requests);
  }
  return held;
}

}  // namespace

TEST_CASE("a job that unauthenticated peers attack serves others meanwhile, and ends with the same bits",
          "[unauthenticated_peers]") {
  const std::vector<std::string> options = {"--epochs", "30"};
  paced_job job(2, options);
  auto events = job.events();
  auto goes_on = [&] {
    CHECK_THAT(events.read_until("event: step"), ContainsSubstring("event: step"));
    CHECK(job.get("/api/v1/job").status == 200);
  };
  goes_on();
  int pid = job.read("processes")["processes"][0]["pid"];
  usage before(pid);
  for (auto* attack : {check_without_token, check_foreign_pages, check_changes, check_malformed}) {
    attack(job);
    goes_on();
  }
  {
    auto held = hold_connections(job);
    goes_on();
    usage during(pid);
    INFO(before.num_descriptors << " descriptors before, " << during.num_descriptors << " during");
    INFO(before.resident_bytes << " bytes before, " << during.resident_bytes << " during");
    CHECK(during.num_descriptors <= before.num_descriptors + 64 + 8);
    if (counts_memory) CHECK(during.resident_bytes <= before.resident_bytes + (64 << 20));
    CHECK(job.read("job")["num_recoveries"] == 0);
  }
  {
    auto held = stall_answers(job);
    for (int i = 0; i < 40; ++i) goes_on();
    usage during(pid);
    INFO(before.resident_bytes << " bytes before, " << during.resident_bytes << " during");
    CHECK(during.num_descriptors <= before.num_descriptors + 64 + 8);
    if (counts_memory) CHECK(during.resident_bytes <= before.resident_bytes + (64 << 20));
  }
  goes_on();
  CHECK(job.finish() == untouched_weights(options));
}
