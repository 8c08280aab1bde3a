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

/// A field of a result as the table shows it.
struct column {
  std::string heading;
  std::vector<std::string> keys;  ///< the first of these that the result has and that is not null
  int width = 0;                  ///< in characters; at least that of the heading
  int digits = 2;                 ///< after the decimal point
  double factor = 1;              ///< from the unit of the result to that of the heading
};
/// Widths of columns.
constexpr int of_spread = 27, of_number = 9;

/// Results one below the other in a line each, or each as a block with a line for each field.
enum class table_layout { lines, blocks };
struct table {
  std::vector<column> columns;
  table_layout layout = table_layout::lines;
};

/// Prints what a bench measures, each result at once: as text, by the columns of a table, or with --json as
/// one object in a line, {"bench":..,"machine":..,<the result's fields>}. A result is a JSON object whose
/// values are numbers, strings, spreads (see to_json), booleans, arrays of numbers, or null for what was not
/// measured, which the table shows as "-".
class report {
 public:
  report(std::string bench, bool json);

  const machine& where() const { return where_; }
  bool is_json() const { return json_; }
  /// A line of text, "name       text"; nothing with --json. Before the first result, notes wait for it: a
  /// bench that fails prints nothing.
  void note(const std::string& name, const std::string& text);
  /// A result for both kinds of output.
  void add(const table& shown, nlohmann::ordered_json result);
  /// Details of the result before, which its JSON object holds already: for the table only.
  void add_detail(const table& shown, const nlohmann::ordered_json& result);

 private:
  std::string bench_;
  bool json_;
  machine where_;
  bool has_result_ = false;            ///< one was printed
  std::string notes_;                  ///< to be printed before the first
  std::vector<std::string> headings_;  ///< of the line printed last
};

/// With so many digits after the decimal point.
std::string number_text(double value, int digits);

/// ": MORE RANKS THAN CORES, they wait for each other's turn" if there are fewer cores; otherwise empty.
std::string crowding_text(const machine& where, int ranks);

}  // namespace troupe::bench
