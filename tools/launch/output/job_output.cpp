#include "output/job_output.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/posix/files/safe_file.hpp"

namespace troupe {
namespace {

/// How long readers may keep the rest of the output waiting at the end.
constexpr int flush_timeout_ms = 5000;

}  // namespace

job_output::job_output(const launch_options& options)
    : json_(options.json),
      log_dir_(options.log_dir),
      out_(options.output_fd),
      err_(options.error_fd),
      said_(options.command.front() + ": ") {
  if (log_dir_.empty()) return;
  if (auto others = posix::others_who_may_change(log_dir_); !others.empty())
    say("--log-dir: " + log_dir_.string() + " is not safe: " + others +
        ", so that they can replace or remove the log files. Choose a folder of your own");
}

void job_output::add(int rank, std::uint32_t incarnation, posix::unique_fd output, posix::unique_fd errors) {
  auto name = "rank-" + std::to_string(rank) + "." + std::to_string(incarnation);
  add(rank, std::move(output), false, open_log(name + ".out", incarnation));
  add(rank, std::move(errors), true, open_log(name + ".err", incarnation));
}

void job_output::add(int rank, posix::unique_fd source, bool is_errors, log_file log) {
  bool is_result = json_ && rank == 0 && !is_errors;
  auto prefix = is_result ? "" : std::string("[") + std::to_string(rank) + "] ";
  bool to_output = is_result || (!json_ && !is_errors);
  splitters_.emplace_back(std::move(source), prefix, to_output ? out_ : err_, std::move(log),
                          is_errors ? &said_ : nullptr);
}

/// A running job goes on without the log file of a process that is started again.
log_file job_output::open_log(const std::string& name, std::uint32_t incarnation) {
  if (log_dir_.empty()) return {};
  auto path = log_dir_ / name;
  auto made = posix::open_safely(path, {.mode = 0600, .content = posix::file_content::truncated});
  if (!made.fd) {
    auto problem = "cannot write the log file " + path.string() + ": " + made.problem;
    if (incarnation == 0) throw bad_input(problem + ". Choose another --log-dir");
    say(problem + ". The job goes on without it");
    return {};
  }
  return {std::move(made.fd), std::move(path), [this](const std::string& warning) { say(warning); }};
}

void job_output::say(const std::string& line) { err_.add("troupe: " + line + "\n"); }

void job_output::add_result(const std::string& line) { out_.add(line + "\n"); }

void job_output::watch(poll_round& round) {
  warn_of_lost_output();
  for (auto& splitter : splitters_)
    if (!splitter.sink().full()) round.watch(splitter.fd(), POLLIN, [&splitter] { splitter.read(); });
  for (auto* sink : {&out_, &err_})
    if (sink->wants_write()) round.watch(sink->fd(), POLLOUT, [sink] { sink->write_some(); });
}

void job_output::drop_ended() {
  splitters_.remove_if([](const line_splitter& splitter) { return splitter.at_end(); });
}

void job_output::read_rest() {
  for (auto& splitter : splitters_) splitter.read();
}

void job_output::flush() {
  out_.flush(flush_timeout_ms);
  warn_of_lost_output();
  err_.flush(flush_timeout_ms);
}

/// A reader that closes its end wants no more (`| head`): that is no problem to speak of.
void job_output::warn_of_lost_output() {
  auto error = out_.error();
  if (error == 0 || error == EPIPE || std::exchange(has_warned_of_output_, true)) return;
  say(std::string("cannot write to standard output, results are missing: ") +
      (error == ETIMEDOUT ? "nothing reads it" : std::strerror(error)));
}

int job_output::exit_code() const {
  if (out_.error() == EPIPE) return 128 + SIGPIPE;
  return out_.error() == 0 ? 0 : 1;
}

}  // namespace troupe
