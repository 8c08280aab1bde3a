#include "child_process.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

#include "troupe/error/errors.hpp"
#include "troupe/posix/thread_limit.hpp"

namespace troupe {
namespace {

struct pipe_ends {
  posix::unique_fd read, write;
};

pipe_ends make_pipe() {
  int ends[2];
  check_posix(::pipe2(ends, O_CLOEXEC), "make a pipe");
  return {posix::unique_fd(ends[0]), posix::unique_fd(ends[1])};
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> made;
  for (const auto& text : texts) made.push_back(const_cast<char*>(text.c_str()));
  made.push_back(nullptr);
  return made;
}

/// The data that the child needs between fork and exec, where it must not allocate.
struct exec_plan {
  const char* program;
  char* const* arguments;
  char* const* environment;
  pid_t parent;
  int input, output, errors, failure, inherited;
};

/// Why a program did not start, as the child tells its parent.
struct start_problem {
  int error_number = 0;
  bool has_input = true;  ///< else /dev/null cannot be opened
};

/// Runs in the child: only async-signal-safe calls.
[[noreturn]] void become(const exec_plan& plan) {
  ::setpgid(0, 0);
  // If the launcher has ended before this line, the kernel sends no signal.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != plan.parent) ::_exit(127);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  int input = plan.input < 0 ? ::open("/dev/null", O_RDONLY) : plan.input;
  bool ready =
      input >= 0 && ::dup2(input, 0) == 0 && ::dup2(plan.output, 1) == 1 && ::dup2(plan.errors, 2) == 2;
  if (input > 2) ::close(input);
  if (plan.inherited > 2) ::fcntl(plan.inherited, F_SETFD, 0);
  bool has_input = input >= 0;
  if (ready) ::execve(plan.program, plan.arguments, plan.environment);
  start_problem problem{errno, has_input};
  [[maybe_unused]] auto told = ::write(plan.failure, &problem, sizeof problem);
  ::_exit(127);
}

/// The kernel forgets how a process ended whose parent ignores SIGCHLD, which a program inherits from a
/// service or container that does: a failure would look like a success.
void keep_exit_statuses() {
  struct sigaction present {};
  ::sigaction(SIGCHLD, nullptr, &present);
  bool ignores = !(present.sa_flags & SA_SIGINFO) && present.sa_handler == SIG_IGN;
  if (!ignores && !(present.sa_flags & SA_NOCLDWAIT)) return;
  if (ignores) present.sa_handler = SIG_DFL;
  present.sa_flags &= ~SA_NOCLDWAIT;
  ::sigaction(SIGCHLD, &present, nullptr);
}

/// Becomes readable when the child `pid` has ended. A thread waits for it where pidfd_open is refused, as by
/// the seccomp profiles of old container engines.
posix::unique_fd watch_end(pid_t pid) {
  posix::unique_fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd || (errno != ENOSYS && errno != EPERM && errno != EACCES)) return pidfd;
  auto ended = make_pipe();
  std::thread([pid, closes_at_end = std::move(ended.write)] {
    siginfo_t about;
    while (::waitid(P_PID, static_cast<id_t>(pid), &about, WEXITED | WNOWAIT) != 0 && errno == EINTR)
      continue;
  }).detach();
  return std::move(ended.read);
}

std::string action_refused(int error_number) {
  if (error_number != EAGAIN) return "start a process";
  return "start a process (" + describe(posix::read_thread_limits()) + ")";
}

std::string why_no_input(int error_number) {
  auto text = std::string("cannot open /dev/null, which programs read: ") + ::strerror(error_number) + ". ";
  if (error_number == EMFILE || error_number == ENFILE)
    return text + "Raise the limit on open files (ulimit -n), or start fewer processes";
  return text + "A container or chroot needs a /dev";
}

bool is_program(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
}

std::string search_path() {
  for (char** entry = environ; *entry; ++entry)
    if (::strncmp(*entry, "PATH=", 5) == 0) return *entry + 5;
  return "/usr/local/bin:/usr/bin:/bin";
}

}  // namespace

std::string signal_name(int number) {
  auto* name = ::sigabbrev_np(number);
  return name ? "SIG" + std::string(name) : std::string("signal ") + std::to_string(number);
}

std::string exit_status::describe() const {
  if (!signal) return "exit code " + std::to_string(code);
  if (signal == SIGKILL) return "killed by SIGKILL";
  std::string meaning = ::sigdescr_np(signal) ? ::sigdescr_np(signal) : "unknown";
  meaning[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(meaning[0])));
  return "ended by " + signal_name(signal) + " (" + meaning + ")";
}

std::string explain_processor_time(const exit_status& status, std::optional<std::chrono::seconds> limit) {
  // What is counted lags behind what the limit is held against.
  constexpr std::chrono::milliseconds lag(500);  // more than 100 ms on a busy machine
  if (!limit || status.signal != SIGKILL || status.processor_time + lag < *limit) return {};
  return "its limit of processor time was used up, " + std::to_string(limit->count()) +
         " s (ulimit -t), and the kernel killed it";
}

std::optional<std::chrono::seconds> processor_time_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_CPU, &limit) != 0 || limit.rlim_max == RLIM_INFINITY) return {};
  return std::chrono::seconds(limit.rlim_max);
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (is_program(name)) return name;
    throw bad_input(
        "cannot run '" + name +
        "': " + (std::filesystem::exists(name) ? "it is not an executable file" : "there is no such file") +
        ". Check the path of the program to launch");
  }
  auto folders = search_path() + ":";
  for (std::size_t begin = 0, end; (end = folders.find(':', begin)) != std::string::npos; begin = end + 1) {
    auto file = std::filesystem::path(folders.substr(begin, end - begin)) / name;
    if (end > begin && is_program(file)) return file;
  }
  throw bad_input(
      "cannot run '" + name + "': there is no such program in PATH" +
      (is_program(name) ? ". Did you mean ./" + name + "?" : ". Check its name, or give its path"));
}

std::string why_not_run(const std::string& program, int error_number) {
  auto text = "cannot run '" + program + "': " + ::strerror(error_number);
  std::ifstream file(program, std::ios::binary);
  std::string line;
  std::getline(file, line);
  bool is_script = line.starts_with("#!");
  if (error_number == ENOEXEC)
    return text +
           ". It is a program for another kind of machine, or a script without a first line such as "
           "#!/bin/sh";
  if (error_number != ENOENT || !file) return text;
  if (!is_script)
    return text + ". The file is there, but the loader or a library that it names is not: see `ldd " +
           program + "`";
  if (line.ends_with('\r'))
    return text +
           ". Its first line ends with a carriage return, as files from Windows have: `sed -i 's/\\r$//' " +
           program + "` removes them";
  auto begin = line.find_first_not_of(" \t", 2);
  auto interpreter = begin == std::string::npos
                         ? std::string()
                         : line.substr(begin, line.find_first_of(" \t", begin) - begin);
  return text + ". Its first line names the interpreter '" + interpreter +
         "', which is not there: install it, or correct the line";
}

child_process::child_process(const child_spec& spec) : send_signal_(spec.send_signal) {
  auto output = make_pipe(), errors = make_pipe(), failure = make_pipe();
  auto arguments = pointers_to(spec.arguments);
  auto environment = pointers_to(spec.environment);
  exec_plan plan{spec.program.c_str(), arguments.data(),   environment.data(),  ::getpid(),    spec.input,
                 output.write.get(),   errors.write.get(), failure.write.get(), spec.inherited};
  keep_exit_statuses();
  pid_ = ::fork();
  if (pid_ == 0) become(plan);
  if (int reason = errno; pid_ < 0) throw system_failure(action_refused(reason), reason);
  failure.write.reset();
  start_problem problem;
  if (::read(failure.read.get(), &problem, sizeof problem) > 0) {
    ::waitpid(pid_, nullptr, 0);
    throw bad_input(problem.has_input ? why_not_run(spec.program, problem.error_number)
                                      : why_no_input(problem.error_number));
  }
  output_ = std::move(output.read);
  errors_ = std::move(errors.read);
  int reason = EAGAIN;
  try {
    pidfd_ = watch_end(pid_);
    reason = errno;
  } catch (const std::system_error& no_thread) {
    reason = no_thread.code().value();
  } catch (const system_failure& no_pipe) {
    reason = no_pipe.error_number();
  }
  if (pidfd_) return;
  ::kill(-pid_, SIGKILL);
  reap();
  throw system_failure("watch a process", reason);
}

child_process::~child_process() {
  if (pid_ <= 0 || reaped_ || !pidfd_) return;
  signal(SIGKILL);
  reap();
}

bool child_process::has_ended() const {
  siginfo_t about{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &about, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         about.si_pid == pid_;
}

bool child_process::is_stopped() const {
  siginfo_t about{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &about, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         about.si_pid == pid_;
}

void child_process::signal(int number) const {
  if (!reaped_) send(-pid_, number);
}

exit_status child_process::reap() {
  siginfo_t about{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &about, WEXITED | WNOWAIT) != 0 && errno == EINTR) continue;
  ::kill(-pid_, SIGKILL);
  rusage used{};
  ::wait4(pid_, nullptr, 0, &used);
  reaped_ = true;
  exit_status status;
  (about.si_code == CLD_EXITED ? status.code : status.signal) = about.si_status;
  for (const auto& time : {used.ru_utime, used.ru_stime})
    status.processor_time += std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  return status;
}

void child_process::abandon() { reaped_ = true; }

}  // namespace troupe
