#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace troupe::bench {

/// What an option may be: a number in a range, or one of some words. By default anything.
struct allowed {
  std::pair<double, double> range = {0, -1};  ///< both ends included; empty: any number
  std::vector<std::string> words = {};        ///< none: any word
};
inline allowed between(double least, double most) { return {{least, most}}; }
inline allowed one_of(std::vector<std::string> words) { return {.words = std::move(words)}; }

/// A subcommand and its options. Bench sources include this and not CLI11, which takes seconds to compile.
class subcommand {
 public:
  subcommand(CLI::App& parent, const char* name, const char* about);

  /// T: int, std::int64_t, std::uint64_t, double, std::string, std::filesystem::path, or a vector of int,
  /// double or std::string, whose values have commas between. `value` holds the default and must outlive the
  /// parsing, as `options` captured in on_run's function does.
  template <class T>
  void add(const char* name, T& value, const char* help, const allowed& values = {});
  /// Two values after one name.
  void add_pair(const char* name, std::vector<std::uint64_t>& values, const char* help);
  void add_flag(const char* name, bool& value, const char* help);
  void on_run(std::function<void()> run);

 private:
  CLI::App& app_;
};

/// Adds `troupe bench worker NAME OPTIONS`, one of the processes that a bench starts and measures; its
/// options are a JSON object (see worker_command).
void add_worker(CLI::App& workers, const char* name, std::function<void(const nlohmann::json&)> run);

/// From "64", "4K", "256M", several with commas between, or a range "8:256M", in which each size is eight
/// times the one before and the last one is the end. Throws bad_input for other text, for 0, for more than
/// 1G, and for a range that ends below its beginning.
std::vector<std::int64_t> byte_sizes_from(const std::string& text);

}  // namespace troupe::bench
