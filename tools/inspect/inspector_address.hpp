#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// Where an inspector answers, and the token that it wants.
struct inspector_address {
  std::string host;  ///< a name, or an address in numbers without brackets
  std::uint16_t port = 0;
  std::string token;  ///< empty: the address has none
};

/// "http://127.0.0.1:8080/#token=5f0c", as a job's start prints it; without "http://", and without a token,
/// too. Throws bad_input for anything else.
inspector_address inspector_address_from(std::string_view url);

}  // namespace troupe
