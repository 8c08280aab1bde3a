#include "bench/measure/arguments.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/benches.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 30;

template <class T>
struct is_list : std::false_type {};
template <class T>
struct is_list<std::vector<T>> : std::true_type {
  using element = T;
};

/// CLI11 prints the ends of a range, so they have the option's type.
template <class Number>
void check_range(CLI::Option& option, std::pair<double, double> ends) {
  option.check(CLI::Range(static_cast<Number>(ends.first), static_cast<Number>(ends.second)));
}

template <class T>
void check(CLI::Option& option, const allowed& values) {
  if (!values.words.empty()) option.check(CLI::IsMember(values.words));
  if (values.range.first > values.range.second) return;
  if constexpr (std::is_arithmetic_v<T>)
    check_range<T>(option, values.range);
  else if constexpr (is_list<T>::value)
    if constexpr (std::is_arithmetic_v<typename is_list<T>::element>)
      check_range<typename is_list<T>::element>(option, values.range);
}

std::int64_t size_from(const std::string& text) {
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string unit(end, text.data() + text.size());
  int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  if (error != std::errc() || shift < 0 || value < 1 || value > (most_bytes >> shift))
    throw bad_input("--bytes " + text + ": expected 1 to 1G, such as 8, 4K or 256M");
  return value << shift;
}

void add_range(std::vector<std::int64_t>& sizes, std::int64_t first, std::int64_t last) {
  if (last < first)
    throw bad_input("--bytes " + std::to_string(first) + ':' + std::to_string(last) +
                    ": expected a range that ends with its larger size, such as 8:256M");
  for (auto size = first; size < last; size *= 8) sizes.push_back(size);
  sizes.push_back(last);
}

}  // namespace

subcommand::subcommand(CLI::App& parent, const char* name, const char* about)
    : app_(*parent.add_subcommand(name, about)) {}

template <class T>
void subcommand::add(const char* name, T& value, const char* help, const allowed& values) {
  auto* option = app_.add_option(name, value, help);
  if constexpr (is_list<T>::value) option->delimiter(',');
  check<T>(*option, values);
  if constexpr (std::is_arithmetic_v<T>)
    option->capture_default_str();
  else if (!value.empty())
    option->capture_default_str();
}
template void subcommand::add(const char*, int&, const char*, const allowed&);
template void subcommand::add(const char*, std::int64_t&, const char*, const allowed&);
template void subcommand::add(const char*, std::uint64_t&, const char*, const allowed&);
template void subcommand::add(const char*, double&, const char*, const allowed&);
template void subcommand::add(const char*, std::string&, const char*, const allowed&);
template void subcommand::add(const char*, std::filesystem::path&, const char*, const allowed&);
template void subcommand::add(const char*, std::vector<int>&, const char*, const allowed&);
template void subcommand::add(const char*, std::vector<double>&, const char*, const allowed&);
template void subcommand::add(const char*, std::vector<std::int64_t>&, const char*, const allowed&);
template void subcommand::add(const char*, std::vector<std::string>&, const char*, const allowed&);

void subcommand::add_pair(const char* name, std::vector<std::uint64_t>& values, const char* help) {
  app_.add_option(name, values, help)->expected(2)->capture_default_str();
}

void subcommand::add_flag(const char* name, bool& value, const char* help) {
  app_.add_flag(name, value, help);
}

void subcommand::on_run(std::function<void()> run) { app_.callback(std::move(run)); }

bench_commands add_bench_commands(CLI::App& app) {
  auto* benches = app.add_subcommand("bench", "Measure this installation on this machine");
  benches->require_subcommand(1);
  auto* workers = benches->add_subcommand("worker", "A process that another bench measures");
  workers->group("");
  workers->require_subcommand(1);
  return {*benches, *workers};
}

void add_worker(CLI::App& workers, const char* name, std::function<void(const nlohmann::json&)> run) {
  auto* worker = workers.add_subcommand(name, "A process that a bench measures");
  auto options = std::make_shared<std::string>("{}");
  worker->add_option("options", *options, "A JSON object");
  worker->callback([options, run = std::move(run)] {
    auto given = nlohmann::json::parse(*options, nullptr, false);
    if (!given.is_object()) throw bad_input("bench worker: expected a JSON object, got " + *options);
    run(given);
  });
}

std::vector<std::int64_t> byte_sizes_from(const std::string& text) {
  std::vector<std::int64_t> sizes;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    auto colon = part.find(':');
    if (colon == std::string::npos)
      sizes.push_back(size_from(part));
    else
      add_range(sizes, size_from(part.substr(0, colon)), size_from(part.substr(colon + 1)));
  }
  if (sizes.empty()) throw bad_input("--bytes: expected a size, such as 8, 4K or 8:256M");
  return sizes;
}

}  // namespace troupe::bench
