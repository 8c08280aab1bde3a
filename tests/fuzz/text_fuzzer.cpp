// Short texts of options, addresses and names. The first byte chooses which.
#include <array>

#include "fuzz/fuzzer.hpp"
#include "inspect/inspector_address.hpp"
#include "inspect/keys.hpp"
#include "launcher.hpp"
#include "troupe/collective/calls/network_sizes.hpp"
#include "troupe/config/duration_text.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/fault/fault_plan.hpp"
#include "troupe/files/printable_text.hpp"
#include "troupe/http/access_policy.hpp"
#include "troupe/http/http_message.hpp"
#include "troupe/http/listen_address.hpp"
#include "troupe/messaging/job_secret.hpp"
#include "troupe/snapshot/folder_layout.hpp"
#include "troupe/wire/hex.hpp"

namespace troupe::fuzz {
namespace {

void try_listen_address(std::string_view text) {
  auto at = http::listen_address_from(text);
  expect(http::listen_address_from(to_string(at)) == at, "a listen address is read back as another one");
}

void try_request(std::string_view text) {
  http::http_request request{"GET", std::string(text)};
  request.headers = {
      {"host", std::string(text)}, {"cookie", std::string(text)}, {"origin", std::string(text)}};
  static_cast<void>(request.parameter("after"));
  static_cast<void>(http::number_parameter(request, "after", 0, 1, 1000));
  static_cast<void>(http::check_access(request, {"a-token-that-is-secret", "a-session", "troupe_1", {}, {}}));
  static_cast<void>(http::token_problem(text));
}

void try_duration(std::string_view text) {
  auto duration = config::duration_from(text);
  expect(config::duration_from(config::to_text(duration)) == duration,
         "a duration is read back as another one");
}

void try_hex(std::string_view text) {
  if (auto bytes = wire::from_hex(text))
    expect(wire::to_hex(*bytes).size() == text.size(), "hex digits are lost");
}

void try_keys(std::string_view text) {
  std::string bytes(text);
  view_state shown;
  for (const auto& one : take_keys(bytes, false)) static_cast<void>(apply_key(shown, one, 3));
  static_cast<void>(take_keys(bytes, true));
}

void try_network_sizes(std::string_view text) {
  auto once = to_string(collective::network_sizes_from(text));
  expect(to_string(collective::network_sizes_from(once)) == once, "network sizes are read back as others");
}

void try_drill(std::string_view text) { static_cast<void>(parse_drill(std::string(text))); }

void try_secret(std::string_view text) {
  expect(messaging::parse_job_secret(std::string(text)).size() >= 16, "a secret is too short");
}

void try_folder_name(std::string_view text) {
  static_cast<void>(snapshot::step_from_set_aside_name(text));
  if (auto step = snapshot::step_from_folder_name(text))
    expect(snapshot::step_folder_name(*step) == text, "a folder of a snapshot is taken for another one");
}

/// A decoder of texts that throws bad_input for wrong ones.
template <auto Decode>
void try_text(std::span<const std::byte> bytes) {
  allow<bad_input>([&] { static_cast<void>(Decode(text_of(bytes))); });
}

using texts = std::vector<std::string>;

constexpr std::array decoders = {
    decoder{try_text<try_listen_address>,
            [] {
              return texts{"127.0.0.1:8080", "[::1]:8080", "localhost:1", "8080"};
            }},
    decoder{try_text<try_request>,
            [] {
              return texts{"/a?b=c&after=%31%", "troupe_1=a; b=c"};
            }},
    decoder{try_text<try_duration>,
            [] {
              return texts{"5s", "200ms", "1.5m", "3"};
            }},
    decoder{try_text<try_hex>, [] { return texts{"00ffAB"}; }},
    decoder{try_text<try_keys>, [] { return texts{"\x1b[A\x1b[5~q/x\x1bOH"}; }},
    decoder{try_text<inspector_address_from>, [] { return texts{"http://127.0.0.1:8080/#token=5f0c"}; }},
    decoder{try_text<fault::faults_from>,
            [] { return texts{"forward:hang@rank=1,step=3,incarnation=0;load@rank=2"}; }},
    decoder{try_text<troupe::files::printable>, [] { return texts{"\xc2\x80\x7f\x1b"}; }},
    decoder{try_text<try_network_sizes>, [] { return texts{"whole_inputs=64K,block=1M"}; }},
    decoder{try_text<try_drill>, [] { return texts{"2@100"}; }},
    decoder{try_text<try_secret>, [] { return texts{std::string(32, 'a')}; }},
    decoder{try_text<try_folder_name>, [] {
              return texts{snapshot::step_folder_name(120), "set-aside-step-000000000120-2"};
            }}};

}  // namespace

void try_input(std::span<const std::byte> bytes) { try_one_of(decoders, bytes); }

std::vector<std::string> seeds() { return seeds_of(decoders); }

}  // namespace troupe::fuzz
