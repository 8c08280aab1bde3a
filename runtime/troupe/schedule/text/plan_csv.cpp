#include "troupe/schedule/text/plan_csv.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/schedule/append_updates.hpp"
#include "troupe/schedule/checks/check_plan.hpp"
#include "troupe/schedule/insert_gathers.hpp"
#include "troupe/schedule/text/pytorch_names.hpp"

namespace troupe::schedule {
namespace {

/// As many as make_plan makes.
constexpr std::int64_t most_csv_cells = 1 << 20;
constexpr std::size_t most_csv_findings = 10;

/// What edges imply, and replicas: a stage's gradients leave as they become complete, wherever its G stands,
/// which waits for the sums.
constexpr std::array<std::string_view, 5> implied = {"SEND_F", "RECV_F", "SEND_B", "RECV_B", "REDUCE_GRAD"};

/// Counted from 1, as editors do; ranks from 0, as PyTorch does.
struct csv_cell {
  int line = 0;
  int rank = 0;
  int number = 0;
};

std::string to_string(const csv_cell& cell) {
  return "line " + std::to_string(cell.line) + " (rank " + std::to_string(cell.rank) + "), cell " +
         std::to_string(cell.number);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// For an error: the beginning, which is enough to find the cell. Bytes that are not printable are shown as
/// '?', since a file of another kind could have control characters of terminals.
std::string quoted(std::string_view cell) {
  constexpr std::size_t most_shown = 40;
  std::string shown(cell.substr(0, most_shown));
  std::ranges::replace_if(
      shown, [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  if (cell.size() <= most_shown) return "'" + shown + "'";
  return "'" + shown + "..' (" + std::to_string(cell.size()) + " bytes)";
}

std::string_view unquoted(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  return text;
}

/// Calls `body(part)` for the parts of `text` between `separator`s.
template <class Body>
void for_each_part(std::string_view text, char separator, Body body) {
  for (;;) {
    auto end = text.find(separator);
    body(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

bool is_implied(std::string_view text) {
  auto begin = text.find_first_not_of("0123456789");
  if (begin == 0 || begin == std::string_view::npos) return false;
  auto word = text.substr(begin, text.find_last_not_of("0123456789") + 1 - begin);
  return std::ranges::find(implied, word) != implied.end();
}

/// "0U" of "0UNSHARD", and any other text as it is.
std::string with_letters(std::string_view text) {
  for (const auto& [kind, name] : named_kinds)
    if (text.ends_with(name)) {
      auto stage = text.substr(0, text.size() - name.size());
      return std::string(stage) + letter_of(kind);
    }
  return std::string(text);
}

using options_of_stages = std::function<plan_csv_options(int num_stages)>;

class csv_reader {
 public:
  explicit csv_reader(std::string file) : file_(std::move(file)) {}

  plan read(std::string_view text, const options_of_stages& options_for) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
    for_each_part(text, '\n', [this](std::string_view line) { read_line(trimmed(line)); });
    if (read_.devices.empty())
      refuse("there is no action in it. Give each rank a line of actions, as in 0F0,0B0");
    read_.kind = has_backwards_ ? schedule_kind::custom : schedule_kind::forward_only;
    auto options = options_for ? options_for(read_.num_stages) : plan_csv_options();
    read_.edges = options.edges.empty() ? chain_edges(read_.num_stages) : options.edges;
    std::ranges::sort(read_.edges);
    read_.mesh = options.mesh;
    read_.has_equal_replicas = options.has_equal_replicas;
    read_.joint = joint_in(read_.kind, read_.mesh, options.joint);
    place_stages();
    add_updates(options);
    insert_gathers(read_, options.gathers);
    check();
    return std::move(read_);
  }

 private:
  [[noreturn]] void refuse(const std::string& problem) const { throw bad_input(file_ + ": " + problem); }

  void read_line(std::string_view line) {
    ++current_cell_.line;
    if (line.starts_with('#')) return;
    if (line.empty() || line == "\"\"") {  // Python's csv quotes a line that is one empty cell
      empty_line_ = empty_line_ == 0 ? current_cell_.line : empty_line_;
      return;
    }
    current_cell_.rank = static_cast<int>(read_.devices.size());
    current_cell_.number = 0;
    if (empty_line_ != 0)
      refuse("line " + std::to_string(empty_line_) + " is empty, but rank " +
             std::to_string(current_cell_.rank) + " needs actions. Remove the line, or begin it with #");
    read_.devices.emplace_back();
    for_each_part(line, ',', [this](std::string_view cell) { read_cell(unquoted(trimmed(cell))); });
    if (read_.devices.back().empty())
      refuse("line " + std::to_string(current_cell_.line) + " has no action. Give rank " +
             std::to_string(current_cell_.rank) + " some, or remove the line");
  }

  void read_cell(std::string_view cell) {
    ++current_cell_.number;
    if (cell.empty() || is_implied(cell)) return;
    if (!cell.starts_with('(')) return add(cell);
    auto end = cell.find(')');
    if (end == std::string_view::npos || cell.substr(end + 1) != "OVERLAP_F_B")
      refuse(to_string(current_cell_) + ": " + quoted(cell) +
             " is no group of actions. Write them as in (0F7;7B3)OVERLAP_F_B");
    for_each_part(cell.substr(1, end - 1), ';', [this](std::string_view each) { add(trimmed(each)); });
  }

  void add(std::string_view text) {
    action op;
    try {
      op = action_from(with_letters(text));
    } catch (const bad_input&) {
      refuse(to_string(current_cell_) + ": " + quoted(text) +
             " is no action. Write stage, kind (F, B, I or W) and microbatch, for example 2F0, or stage and "
             "UNSHARD or RESHARD");
    }
    if (op.kind == action_kind::reduce_gradient || op.kind == action_kind::all_reduce)
      refuse_update(current_cell_, op);
    has_backwards_ |= op.kind != action_kind::forward && !is_of_storage(op.kind);
    bool is_too_large = op.stage >= most_csv_cells || op.microbatch >= most_csv_cells;
    if (!is_too_large) {
      read_.num_stages = std::max(read_.num_stages, op.stage + 1);
      auto& count = op.kind == action_kind::apply ? read_.flush_every : read_.num_microbatches;
      count = std::max(count, op.microbatch + 1);
    }
    if (op.kind == action_kind::apply && !first_apply_) first_apply_ = {current_cell_, op};
    if (is_too_large || static_cast<std::int64_t>(read_.num_stages) * read_.num_microbatches > most_csv_cells)
      refuse(to_string(current_cell_) + ": with " + troupe::to_string(op) +
             " there are more stages times microbatches than " + std::to_string(most_csv_cells) +
             ". Number both from 0");
    read_.devices.back().push_back(op);
    cells_[troupe::to_string(op)].push_back(current_cell_);
    line_of_stage_.emplace(op.stage, current_cell_);
  }

  [[noreturn]] void refuse_update(const csv_cell& cell, const action& op) const {
    refuse(to_string(cell) + ": " + troupe::to_string(op) +
           " has no place in a file: reductions and optimizer steps are appended, unless there are several "
           "steps "
           "(0A, 0A1, ...). Remove it");
  }

  void add_updates(const plan_csv_options& options) {
    for (int step = 0; step < read_.flush_every; ++step)
      read_.reductions.insert(read_.reductions.end(), options.reductions.begin(), options.reductions.end());
    update_options updates{options.averages_weights, options.stages_with_common_parameters};
    if (!first_apply_) return append_updates(read_, updates);
    if (read_.flush_every == 1) refuse_update(first_apply_->first, first_apply_->second);
    for (auto& device : read_.devices) device = with_reductions(device, read_, updates);
  }

  void place_stages() {
    for (int stage = 0; stage < read_.num_stages; ++stage) {
      auto found = line_of_stage_.find(stage);
      if (found == line_of_stage_.end())
        refuse("no rank runs stage " + std::to_string(stage) + ", but there are stages up to " +
               std::to_string(read_.num_stages - 1));
      read_.device_of_stage.push_back(found->second.rank);
    }
  }

  void check() const {
    auto found = check_plan(read_);
    if (found.empty()) return;
    std::string text = "the plan is not valid: ";
    for (std::size_t i = 0; i < std::min(found.size(), most_csv_findings); ++i)
      text += (i ? "; " : "") + with_cells(found[i]);
    if (found.size() > most_csv_findings)
      text += "; and " + std::to_string(found.size() - most_csv_findings) + " more findings";
    refuse(text);
  }

  /// The finding with the cells of each action that it names.
  std::string with_cells(const std::string& finding) const {
    std::string text;
    auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
    for (auto at = finding.begin(); at != finding.end();) {
      auto end = std::find_if_not(at, finding.end(), is_word);
      std::string word(at, end);
      text += word + cells_text(word);
      for (at = end; at != finding.end() && !is_word(*at); ++at) text += *at;
    }
    constexpr std::string_view missing = " is missing";
    if (!finding.ends_with(missing)) return text;
    auto op = action_from(finding.substr(0, finding.size() - missing.size()));
    const auto& place = line_of_stage_.at(op.stage);
    return text + " from line " + std::to_string(place.line) + " (rank " + std::to_string(place.rank) + ")";
  }

  std::string cells_text(const std::string& action_name) const {
    auto found = cells_.find(action_name);
    if (found == cells_.end()) return {};
    std::string text;
    for (const auto& cell : found->second) text += (text.empty() ? "" : "; ") + to_string(cell);
    return " [" + text + "]";
  }

  std::string file_;
  csv_cell current_cell_;
  int empty_line_ = 0;  // the first one; 0: none
  bool has_backwards_ = false;
  plan read_;
  std::optional<std::pair<csv_cell, action>> first_apply_;
  std::map<std::string, std::vector<csv_cell>> cells_;  // of each action
  std::map<int, csv_cell> line_of_stage_;               // its first action's
};

}  // namespace

plan read_plan_csv(std::string_view text, const std::string& file, const plan_csv_options& options) {
  return csv_reader(file).read(text, [&](int) { return options; });
}

plan read_plan_file(const std::filesystem::path& file, const options_of_stages& options) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream.is_open() || std::filesystem::is_directory(file))
    throw bad_input("the plan file " + file.string() +
                    " cannot be read. Name a CSV file, as `troupe schedule --csv FILE` writes one");
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  return csv_reader(file.string()).read(text, options);
}

}  // namespace troupe::schedule
