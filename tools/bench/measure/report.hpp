#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/measure/spread.hpp"

namespace troupe::bench {

/// Where something is measured, and how busy it was before.
struct machine {
  std::string processor;
  int cores = 0;    ///< that this process may use
  double load = 0;  ///< processes that wanted to run, over the last minute
};
machine this_machine();

/// A field of a result as a table shows it, under its own name.
struct column {
  std::string field;
  int width = 0;  ///< in characters; at least that of the name and of the first value
};
using columns = std::vector<column>;

/// Prints what a bench measures, each result at once: as text, or with --json as one object in a line,
/// {"bench":..,"machine":..,<the result's fields>}. A result is a JSON object whose values are numbers,
/// strings, spreads, booleans, arrays, or null for what was not measured, which is "-" as text.
class report {
 public:
  report(std::string bench, bool json);

  const machine& where() const { return where_; }
  /// A line of text, "name       text"; nothing with --json. Before the first result, notes wait for it: a
  /// bench that fails prints nothing.
  void note(const std::string& name, const std::string& text);
  /// Notes how many ranks there are to a core, if not all have one.
  void note_crowding(int num_ranks);
  /// A result; as text, some of its fields in a line of a table.
  void add(const columns& shown, const nlohmann::ordered_json& result);
  /// A result; as text, a line for each field.
  void add_block(const nlohmann::ordered_json& result);
  /// Details of the result before, which its JSON object holds already: for the table only.
  void add_detail(const columns& shown, const nlohmann::ordered_json& result);

 private:
  void print_object(const nlohmann::ordered_json& result) const;
  void print_notes();

  std::string bench_;
  bool json_;
  machine where_;
  bool has_result_ = false;  ///< a result was printed
  std::string notes_;        ///< to be printed before the first
  columns shown_;            ///< those of the line printed last, as wide as they were then
};

}  // namespace troupe::bench
