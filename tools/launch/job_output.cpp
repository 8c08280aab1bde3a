#include "job_output.hpp"

#include <fcntl.h>

#include "troupe/error/errors.hpp"

namespace troupe {

job_output::job_output(const launch_options& options)
    : json_(options.json),
      log_dir_(options.log_dir),
      out_(options.output_fd),
      err_(options.error_fd),
      said_(options.command.front() + ": ") {}

void job_output::add(int rank, std::uint32_t incarnation, unique_fd output, unique_fd errors) {
  auto name = "rank-" + std::to_string(rank) + "." + std::to_string(incarnation);
  add(rank, std::move(output), false, name + ".out");
  add(rank, std::move(errors), true, name + ".err");
}

void job_output::add(int rank, unique_fd source, bool is_errors, const std::string& log_name) {
  bool is_result = json_ && rank == 0 && !is_errors;
  auto prefix = is_result ? "" : std::string("[") + std::to_string(rank) + "] ";
  bool to_output = is_result || (!json_ && !is_errors);
  splitters_.emplace_back(std::move(source), prefix, to_output ? out_ : err_, open_log(log_name),
                          is_errors ? &said_ : nullptr);
}

unique_fd job_output::open_log(const std::string& name) const {
  if (log_dir_.empty()) return {};
  auto path = log_dir_ / name;
  unique_fd made(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!made) throw bad_input("cannot write the log file " + path.string() + ". Choose another --log-dir");
  return made;
}

void job_output::say(const std::string& line) { err_.add("troupe: " + line + "\n"); }

void job_output::add_result(const std::string& line) { out_.add(line + "\n"); }

void job_output::watch(poll_round& in) {
  for (auto& splitter : splitters_)
    if (!splitter.sink().full()) in.watch(splitter.fd(), POLLIN, [&splitter] { splitter.read(); });
  for (auto* sink : {&out_, &err_})
    if (sink->wants_write()) in.watch(sink->fd(), POLLOUT, [sink] { sink->write_some(); });
}

void job_output::drop_ended() {
  splitters_.remove_if([](const line_splitter& splitter) { return splitter.at_end(); });
}

void job_output::read_rest() {
  for (auto& splitter : splitters_) splitter.read();
}

void job_output::flush() {
  out_.flush(5000);
  err_.flush(5000);
}

}  // namespace troupe
