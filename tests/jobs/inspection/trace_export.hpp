#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace troupe::testing {

/// A span of a trace in the Chrome JSON format. Times in nanoseconds.
struct trace_slice {
  std::string name;
  std::int64_t begin_ns = 0, end_ns = 0;
  nlohmann::json arguments;
};

/// A trace as a viewer reads it: knows the format's documentation, and nothing of how Troupe writes it.
struct trace_export {
  struct thread {
    std::string name;
    std::vector<trace_slice> slices;  ///< in the order in which they begin, the longer one first
  };
  struct arrow_end {
    std::string id;
    std::pair<int, int> at;  ///< process and thread
    std::int64_t at_ns = 0;
  };
  std::map<std::pair<int, int>, thread> threads;
  std::map<int, std::string> process_names;
  std::vector<arrow_end> begins, ends;
  std::vector<std::string> problems;  ///< what a viewer could not read

  explicit trace_export(const nlohmann::json& read);

  /// Slices of a thread that overlap without one being inside the other: a viewer draws them wrongly.
  std::vector<std::string> overlaps() const;
  /// Arrows that begin or end outside of all slices, or end before they begin, or have several ends or
  /// begins.
  std::vector<std::string> arrow_problems() const;
  /// How many arrows have a begin and an end.
  std::size_t num_arrows() const;
};

}  // namespace troupe::testing
