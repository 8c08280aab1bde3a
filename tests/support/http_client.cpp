#include "support/http_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

namespace troupe::testing {

client_socket::client_socket(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd_ < 0 || ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0)
    throw std::runtime_error("[client_socket] cannot connect to port " + std::to_string(port));
}

client_socket::~client_socket() {
  if (fd_ >= 0) ::close(fd_);
}

bool client_socket::send(const std::string& bytes) const {
  for (std::size_t sent = 0; sent < bytes.size();) {
    auto more = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) return false;
    sent += static_cast<std::size_t>(more);
  }
  return true;
}

std::string client_socket::read_until(const std::string& text) const {
  std::string read;
  char piece[4096];
  std::size_t searched = 0;
  while (text.empty() || read.find(text, searched) == std::string::npos) {
    searched = read.size() < text.size() ? 0 : read.size() - text.size();
    auto more = ::recv(fd_, piece, sizeof piece, 0);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) break;
    read.append(piece, static_cast<std::size_t>(more));
  }
  return read;
}

http_answer send_http(std::uint16_t port, const std::string& bytes) {
  client_socket connection(port);
  connection.send(bytes);
  auto text = connection.read_all();
  http_answer answer;
  if (text.size() < 12) return answer;
  answer.status = std::stoi(text.substr(9, 3));
  auto end = text.find("\r\n\r\n");
  answer.head = text.substr(0, end);
  if (end != std::string::npos) answer.body = text.substr(end + 4);
  return answer;
}

http_answer ask_http(std::uint16_t port, const std::string& method, const std::string& target,
                     const std::vector<std::string>& headers, const std::string& body) {
  auto bytes = method + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
               "\r\nConnection: close\r\n";
  for (const auto& line : headers) bytes += line + "\r\n";
  if (!body.empty()) bytes += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return send_http(port, bytes + "\r\n" + body);
}

}  // namespace troupe::testing
