#include "support/processes/run_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>

namespace troupe::testing {
namespace {

using clock = std::chrono::steady_clock;

/// How many times as long programs may take: sanitizers make them several times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int more_time = 4;
#else
constexpr int more_time = 1;
#endif

std::vector<std::string> environment_of(const run_options& options) {
  std::vector<std::string> made;
  for (char** entry = environ; *entry; ++entry) {
    std::string variable(*entry);
    auto name = variable.substr(0, variable.find('='));
    if (!options.environment.contains(name) && std::ranges::count(options.without, name) == 0)
      made.push_back(std::move(variable));
  }
  for (const auto& [name, value] : options.environment) made.push_back(name + "=" + value);
  return made;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> made;
  for (auto& text : texts) made.push_back(text.data());
  made.push_back(nullptr);
  return made;
}

/// Runs in the child, between fork and exec.
[[noreturn]] void become(char** command, char** environment, int output, int errors, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::dup2(::open("/dev/null", O_RDONLY), 0);
  ::dup2(output, 1);
  ::dup2(errors, 2);
  // Tests run in the background may have these ignored.
  for (int number : {SIGINT, SIGHUP, SIGTERM}) ::signal(number, SIG_DFL);
  ::execvpe(command[0], command, environment);
  ::_exit(127);
}

}  // namespace

background_process::background_process(const run_options& options)
    : deadline_(clock::now() + more_time * options.deadline) {
  for (const auto& word : options.command) name_ += (name_.empty() ? "" : " ") + word;
  int output[2], errors[2];
  if (::pipe2(output, O_CLOEXEC) != 0 || ::pipe2(errors, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  auto words = options.command;
  auto variables = environment_of(options);
  auto command = pointers_to(words), environment = pointers_to(variables);
  auto parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) become(command.data(), environment.data(), output[1], errors[1], parent);
  ::setpgid(pid_, pid_);
  ::close(output[1]);
  ::close(errors[1]);
  out_.fd = output[0];
  err_.fd = errors[0];
}

background_process::~background_process() {
  if (!reaped_) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (auto* stream : {&out_, &err_})
    if (stream->fd >= 0) ::close(stream->fd);
}

void background_process::signal(int number) const { ::kill(pid_, number); }

std::string background_process::wait_for_line(const std::string& text) {
  while (true) {
    if (auto line = next_line(out_, text)) return *line;
    if (auto line = next_line(err_, text)) return *line;
    if (!read_more()) give_up("ended without a line with '" + text + "'");
  }
}

process_result background_process::wait() {
  while (read_more()) continue;
  int status = 0;
  ::waitpid(pid_, &status, 0);
  reaped_ = true;
  process_result result;
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.output = out_.text;
  result.errors = err_.text;
  return result;
}

/// Waits for output and reads it. False: both streams are at their end.
bool background_process::read_more() {
  std::array<pollfd, 2> polled = {{{out_.fd, POLLIN, 0}, {err_.fd, POLLIN, 0}}};
  if (out_.fd < 0 && err_.fd < 0) return false;
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - clock::now()).count();
  int ready = ::poll(polled.data(), polled.size(), static_cast<int>(std::max<std::int64_t>(0, left)));
  if (ready == 0) give_up("did not end in time");
  if (polled[0].revents) read_some(out_);
  if (polled[1].revents) read_some(err_);
  return true;
}

void background_process::read_some(stream& from) {
  std::array<char, 16384> chunk;
  auto got = ::read(from.fd, chunk.data(), chunk.size());
  if (got > 0) from.text.append(chunk.data(), static_cast<std::size_t>(got));
  if (got > 0 || (got < 0 && errno == EINTR)) return;
  ::close(from.fd);
  from.fd = -1;
}

std::optional<std::string> background_process::next_line(stream& in, const std::string& text) {
  for (std::size_t end; (end = in.text.find('\n', in.searched)) != std::string::npos;) {
    auto line = in.text.substr(in.searched, end - in.searched);
    in.searched = end + 1;
    if (line.find(text) != std::string::npos) return line;
  }
  return {};
}

void background_process::give_up(const std::string& why) {
  ::kill(-pid_, SIGKILL);
  throw std::runtime_error("`" + name_ + "` " + why + "\n--- its output\n" + out_.text + "--- its errors\n" +
                           err_.text);
}

process_result run_process(const run_options& options) { return background_process(options).wait(); }

process_result run_in_shell(const std::string& line) {
  return run_process({.command = {"/bin/sh", "-c", line}, .environment = {}, .without = {}});
}

}  // namespace troupe::testing
