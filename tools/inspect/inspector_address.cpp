#include "inspect/inspector_address.hpp"

#include <charconv>
#include <system_error>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

[[noreturn]] void refuse(std::string_view url) {
  throw bad_input("expected the address that the job's start printed, http://HOST:PORT/#token=TOKEN, got '" +
                  std::string(url.substr(0, url.find('#'))) + "'");
}

}  // namespace

inspector_address inspector_address_from(std::string_view url) {
  auto rest = url;
  if (rest.starts_with("http://")) rest.remove_prefix(7);
  inspector_address found;
  if (auto mark = rest.find("#token="); mark != rest.npos) {
    found.token = rest.substr(mark + 7);
    rest = rest.substr(0, mark);
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  auto colon = rest.rfind(':');
  if (colon == rest.npos || colon == 0) refuse(url);
  auto host = rest.substr(0, colon), port = rest.substr(colon + 1);
  auto [end, status] = std::from_chars(port.data(), port.data() + port.size(), found.port);
  if (status != std::errc() || end != port.data() + port.size() || found.port == 0) refuse(url);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty() || host.find_first_of("/[]@ ") != host.npos) refuse(url);
  found.host = host;
  return found;
}

}  // namespace troupe
