#include "troupe/config/yaml_settings.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include "troupe/config/text_file.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::config {
namespace {

/// Marks count lines from 0.
int line_of(const YAML::Mark& mark) { return mark.line + 1; }

/// Whether the line, from 0 on, begins with blanks that include a tab, which YAML does not take for
/// indentation.
bool begins_with_tab(std::string_view text, int line) {
  for (; line > 0 && text.find('\n') != text.npos; --line) text.remove_prefix(text.find('\n') + 1);
  return text.substr(0, text.find_first_not_of(" \t")).find('\t') != text.npos;
}

YAML::Node parse(const std::filesystem::path& file, const std::string& text) {
  try {
    auto documents = YAML::LoadAll(text);
    if (documents.size() > 1)
      refuse_at_line(file, line_of(documents[1].Mark()),
                     "expected one YAML document, got a second one after '---': leave the '---' out, or put "
                     "what follows into a file of its own");
    return documents.empty() ? YAML::Node() : documents.front();
  } catch (const YAML::Exception& problem) {
    if (begins_with_tab(text, problem.mark.line))
      refuse_at_line(file, line_of(problem.mark),
                     "the line begins with a tab, and YAML indents with spaces: remove it");
    refuse_at_line(file, line_of(problem.mark), problem.msg);
  }
}

/// The word for null that stands at the mark, on the line of the key; empty: the value is left out, and what
/// stands there is something else.
std::string null_word(const std::string& text, const YAML::Mark& key, const YAML::Mark& value) {
  if (value.line != key.line || value.pos < 0) return {};
  auto rest = std::string_view(text).substr(std::min(static_cast<std::size_t>(value.pos), text.size()));
  auto word = std::string(rest.substr(0, rest.find_first_of(" \t\r\n#")));
  auto is = [&word](auto... known) { return ((word == known) || ...); };
  return is("~", "null", "Null", "NULL") ? word : std::string();
}

yaml_setting setting_of(const std::filesystem::path& file, const std::string& text, const YAML::Node& key,
                        const YAML::Node& value) {
  auto line = line_of(key.Mark());
  if (key.IsNull())
    refuse_at_line(file, line, "expected a key, got none, or the word null: put it in quotes");
  if (!key.IsScalar()) refuse_at_line(file, line, "expected a key, got a list or a map");
  if (key.Scalar() == "<<")
    refuse_at_line(file, line, "merge keys ('<<') are not read: write the keys that they stand for");
  if (value.IsNull())
    if (auto word = null_word(text, key.Mark(), value.Mark()); !word.empty())
      return {key.Scalar(), word, line, line, true};
  if (!value.IsScalar())
    refuse_at_line(file, line,
                   "key '" + key.Scalar() + "': expected one value, got " +
                       (value.IsNull() ? "none" : "a list or a map"));
  return {key.Scalar(), value.Scalar(), line, line_of(value.Mark())};
}

}  // namespace

void refuse_at_line(const std::filesystem::path& file, int line, const std::string& problem) {
  throw bad_input(file.string() + ":" + std::to_string(line) + ": " + problem);
}

std::vector<yaml_setting> read_yaml_settings(const std::filesystem::path& file, const std::string& what) {
  auto text = read_text_file(file, what, most_settings_bytes);
  auto root = parse(file, text);
  if (root.IsNull()) return {};
  if (!root.IsMap())
    refuse_at_line(
        file, line_of(root.Mark()),
        "expected 'key: value' lines, got a " + std::string(root.IsSequence() ? "list" : "single value"));
  std::vector<yaml_setting> settings;
  std::set<std::string> seen;
  for (const auto& each : root) {
    settings.push_back(setting_of(file, text, each.first, each.second));
    if (!seen.insert(settings.back().key).second)
      refuse_at_line(file, settings.back().key_line,
                     "key '" + settings.back().key + "' is there twice: remove one");
  }
  return settings;
}

std::string yaml_key(const std::string& key) {
  auto is_plain = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; };
  auto is_null = key.empty() || key == "null" || key == "Null" || key == "NULL";
  if (!is_null && std::ranges::all_of(key, is_plain)) return key;
  YAML::Emitter text;
  text << YAML::DoubleQuoted << key;
  return text.c_str();
}

}  // namespace troupe::config
