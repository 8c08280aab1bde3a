#include "bench/processes/subprocess.hpp"

#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "child_process.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

constexpr int bad_input_code = 2;

/// Returns whether there may be more.
bool read_some(int fd, std::string& text) {
  char chunk[4096];
  auto count = ::read(fd, chunk, sizeof chunk);
  if (count <= 0) return false;
  text.append(chunk, static_cast<std::size_t>(count));
  return true;
}

}  // namespace

finished_process run_process(const std::vector<std::string>& command,
                             const std::vector<std::string>& environment) {
  child_process child({find_program(command.front()), command, environment_with(environment)});
  auto output = child.take_output(), errors = child.take_errors();
  finished_process finished;
  pollfd polled[2] = {{output.get(), POLLIN, 0}, {errors.get(), POLLIN, 0}};
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    if (::poll(polled, 2, -1) < 0) continue;
    if (polled[0].revents && !read_some(output.get(), finished.output)) polled[0].fd = -1;
    if (polled[1].revents && !read_some(errors.get(), finished.errors)) polled[1].fd = -1;
  }
  finished.exit_code = child.reap().shell_code();
  return finished;
}

nlohmann::json run_for_object(const std::vector<std::string>& command,
                              const std::vector<std::string>& environment) {
  auto finished = run_process(command, environment);
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

std::string this_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string sibling_program(const std::string& name) {
  return std::filesystem::path(this_program()).replace_filename(name).string();
}

std::vector<std::string> worker_command(const std::string& name, const nlohmann::json& options) {
  return {this_program(), "bench", "worker", name, options.dump()};
}

}  // namespace troupe::bench
