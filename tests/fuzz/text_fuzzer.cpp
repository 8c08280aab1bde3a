// Short texts of options and addresses. The first byte chooses which.
#include <array>
#include <functional>

#include "fuzz/fuzzer.hpp"
#include "inspect/inspector_address.hpp"
#include "inspect/keys.hpp"
#include "troupe/config/duration_text.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/fault/fault_plan.hpp"
#include "troupe/http/access_policy.hpp"
#include "troupe/http/http_message.hpp"
#include "troupe/http/listen_address.hpp"
#include "troupe/snapshot/printable_text.hpp"
#include "troupe/wire/hex.hpp"

namespace troupe::fuzz {
namespace {

void try_listen_address(std::string_view text) {
  auto at = listen_address_from(text);
  expect(listen_address_from(to_string(at)) == at, "a listen address is read back as another one");
}

void try_request(std::string_view text) {
  http_request request{"GET", std::string(text)};
  request.headers = {
      {"host", std::string(text)}, {"cookie", std::string(text)}, {"origin", std::string(text)}};
  static_cast<void>(request.parameter("after"));
  static_cast<void>(number_parameter(request, "after", 0, 1, 1000));
  static_cast<void>(check_access(request, {"a-token-that-is-secret", "a-session", "troupe_1", {}, {}}));
  static_cast<void>(token_problem(text));
}

void try_duration(std::string_view text) {
  auto duration = duration_from(text);
  expect(duration_from(to_text(duration)) == duration, "a duration is read back as another one");
}

void try_hex(std::string_view text) {
  if (auto bytes = from_hex(text)) expect(to_hex(*bytes).size() == text.size(), "hex digits are lost");
}

void try_keys(std::string_view text) {
  std::string bytes(text);
  view_state shown;
  for (const auto& one : take_keys(bytes, false)) static_cast<void>(apply_key(shown, one, 3));
  static_cast<void>(take_keys(bytes, true));
}

using decoder = void (*)(std::string_view);
constexpr std::array<decoder, 8> decoders = {
    try_listen_address,
    try_request,
    try_duration,
    try_hex,
    try_keys,
    [](std::string_view text) { static_cast<void>(inspector_address_from(text)); },
    [](std::string_view text) { static_cast<void>(faults_from(text)); },
    [](std::string_view text) { static_cast<void>(troupe::printable(text)); }};

}  // namespace

void try_input(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  auto decode = decoders[static_cast<std::size_t>(bytes[0]) % decoders.size()];
  allow<bad_input>([&] { decode(text_of(bytes.subspan(1))); });
}

std::vector<std::string> seeds() {
  std::vector<std::string> made;
  for (const char* text : {"127.0.0.1:8080", "[::1]:8080", "localhost:1", "8080"})
    made.push_back('\0' + std::string(text));
  for (const char* text : {"/a?b=c&after=%31%", "troupe_1=a; b=c"}) made.push_back('\1' + std::string(text));
  for (const char* text : {"5s", "200ms", "1.5m", "3"}) made.push_back('\2' + std::string(text));
  made.push_back(
      "\3"
      "00ffAB");
  made.push_back(
      "\4"
      "\x1b[A\x1b[5~q/x\x1bOH");
  made.push_back(
      "\5"
      "http://127.0.0.1:8080/#token=5f0c");
  made.push_back(
      "\6"
      "forward:hang@rank=1,step=3,incarnation=0;load@rank=2");
  made.push_back(
      "\7"
      "\xc2\x80\x7f\x1b");
  return made;
}

}  // namespace troupe::fuzz
