#pragma once
#include <CLI/CLI.hpp>
#include <string>

namespace troupe::usage {

/// Help as CLI11 writes it, but for an option's value: N for whole numbers, X for others and TEXT, without
/// the library's names of types and limits (INT:INT in [...]), which errors say in words.
class help_formatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
};

}  // namespace troupe::usage
