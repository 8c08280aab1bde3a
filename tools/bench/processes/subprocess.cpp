#include "bench/processes/subprocess.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "child_process.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

constexpr int bad_input_code = 2;

}  // namespace

std::string read_all(const posix::unique_fd& from) {
  std::string text;
  char chunk[4096];
  for (ssize_t count = 0; (count = ::read(from.get(), chunk, sizeof chunk)) > 0;)
    text.append(chunk, static_cast<std::size_t>(count));
  return text;
}

finished_process run_process(const std::vector<std::string>& command,
                             const std::vector<std::string>& environment) {
  child_process child({find_program(command.front()), command, environment_with(environment)});
  auto output = child.take_output(), errors = child.take_errors();
  // Both at once: a program waits while either is full.
  auto reading_errors = std::async(std::launch::async, [&errors] { return read_all(errors); });
  auto printed = read_all(output);
  auto printed_errors = reading_errors.get();
  return {child.reap().shell_code(), std::move(printed), std::move(printed_errors)};
}

nlohmann::json run_for_object(const std::vector<std::string>& command) {
  auto finished = run_process(command);
  auto objects = json_objects_in(finished.output);
  if (finished.exit_code != 0 || objects.empty())
    throw std::runtime_error("'" + command.front() + "' ended with exit code " +
                             std::to_string(finished.exit_code) +
                             " and measured nothing: " + finished.output + finished.errors);
  return objects.back();
}

std::vector<nlohmann::json> json_objects_in(const std::string& text) {
  std::vector<nlohmann::json> objects;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (auto object = nlohmann::json::parse(line, nullptr, false); object.is_object())
      objects.push_back(std::move(object));
  return objects;
}

std::vector<std::string> environment_with(const std::vector<std::string>& more) {
  auto all = more;
  for (char** entry = environ; *entry; ++entry) all.emplace_back(*entry);
  return all;
}

void check_exit_code(int code, const std::string& what, const std::string& errors) {
  if (code == bad_input_code) throw bad_input(what + " refused its input:\n" + errors);
  if (code != 0)
    throw std::runtime_error(what + " ended with exit code " + std::to_string(code) + ":\n" + errors);
}

std::string why_missing(const std::string& program, const std::string& package) {
  try {
    find_program(program);
    return "";
  } catch (const bad_input&) {
    return "there is no " + program + " here (Debian: " + package + ")";
  }
}

posix::unique_fd make_memory_file(std::size_t size_bytes) {
  posix::unique_fd file(
      static_cast<int>(check_posix(::memfd_create("troupe-bench", MFD_CLOEXEC), "make a memory file")));
  check_posix(::ftruncate(file.get(), static_cast<off_t>(size_bytes)), "size a memory file");
  return file;
}

std::string path_of(const posix::unique_fd& file) {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file.get());
}

std::string this_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string sibling_program(const std::string& name) {
  return std::filesystem::path(this_program()).replace_filename(name).string();
}

std::vector<std::string> worker_command(const std::string& name, const nlohmann::json& options) {
  return {this_program(), "bench", "worker", name, options.dump()};
}

std::vector<std::string> passively_waiting(std::vector<std::string> command) {
  command.insert(command.begin(), {"env", "OMP_WAIT_POLICY=passive"});
  return command;
}

}  // namespace troupe::bench
