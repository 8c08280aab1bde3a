#include "inspect/job_record.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/posix/files/safe_file.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* format_name = "troupe inspect record";

bool is_whole(const json& line) {
  auto found = line.find("whole");
  return found != line.end() && found->is_boolean() && found->get<bool>();
}

bool is_snapshot(const json& line) {
  if (!line.is_object() || !has_number(line, "at_ms")) return false;
  auto parts = line.find("parts");
  return parts != line.end() && parts->is_object();
}

/// An open file of a folder reads as an empty one.
void check_is_file(const std::filesystem::path& file) {
  std::error_code none;  // opening it says what is wrong
  if (std::filesystem::is_directory(file, none))
    throw bad_input("cannot replay '" + file.string() +
                    "': it is a folder. Expected a file that `troupe inspect --record FILE` wrote");
}

void check_first(const std::filesystem::path& file, const std::string& text) {
  auto first = json::parse(text, nullptr, false);
  if (text_in(first, "format") != format_name)
    throw bad_input(file.string() +
                    " is no record of `troupe inspect --record FILE`: its first line does not say so");
  auto version = number_in(first, "version");
  if (version != job_record_writer::version)
    throw bad_input(file.string() + " is a record of version " + std::to_string(static_cast<int>(version)) +
                    ", this program reads version " + std::to_string(job_record_writer::version) +
                    ": replay it with the `troupe` that wrote it");
}

}  // namespace

job_record_writer::job_record_writer(std::filesystem::path file) : file_(std::move(file)) {
  auto opened = posix::open_safely(file_, {.content = posix::file_content::truncated});
  if (!opened.fd)
    throw bad_input("cannot write the record " + file_.string() + ": " + opened.problem +
                    ". Name another file with --record");
  out_ = std::move(opened.fd);
  write({{"format", format_name}, {"version", version}});
}

void job_record_writer::add(const job_snapshot& snapshot) {
  bool whole = num_written_++ % whole_every == 0;
  auto parts = json::object();
  for (const auto& [name, value] : snapshot.parts.items()) {
    auto known = last_.parts.find(name);
    if (whole || known == last_.parts.end() || *known != value) parts[name] = value;
  }
  json line = {{"at_ms", snapshot.at_ms}};
  if (whole) line["whole"] = true;
  line["parts"] = std::move(parts);
  write(line);
  last_ = snapshot;
}

void job_record_writer::write(const json& line) {
  auto text = line.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
  for (std::string_view left = text; !left.empty();) {
    auto written = ::write(out_.get(), left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      throw system_failure("write the record " + file_.string(), written < 0 ? errno : ENOSPC);
    left.remove_prefix(static_cast<std::size_t>(written));
  }
}

job_record::job_record(const std::filesystem::path& file) {
  check_is_file(file);
  std::ifstream in(file);
  if (!in)
    throw bad_input("cannot read the record " + file.string() + ": " + std::strerror(errno) +
                    ". Expected a file of `troupe inspect --record`");
  std::string text;
  std::getline(in, text);
  check_first(file, text);
  for (std::size_t number = 2; std::getline(in, text); ++number) {
    auto line = json::parse(text, nullptr, false);
    if (is_snapshot(line) && (is_whole(line) || !snapshots_.empty())) {
      snapshots_.push_back(std::move(line));
      continue;
    }
    warning_ = file.string() + ": line " + std::to_string(number) +
               " is damaged or cut short; it and what follows are left out";
    break;
  }
  if (snapshots_.empty()) throw bad_input(file.string() + " has no snapshot: nothing was recorded");
}

job_snapshot job_record::at(std::size_t index) const {
  auto first = index;
  while (!is_whole(snapshots_.at(first))) --first;
  job_snapshot made;
  for (auto i = first; i <= index; ++i)
    for (const auto& [name, value] : snapshots_[i]["parts"].items()) made.parts[name] = value;
  made.at_ms = static_cast<std::int64_t>(number_in(snapshots_[index], "at_ms"));
  return made;
}

}  // namespace troupe
