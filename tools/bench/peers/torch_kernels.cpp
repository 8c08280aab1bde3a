#include "bench/peers/torch_kernels.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <stdexcept>

#include "bench/peers/torch.hpp"
#include "bench/processes/subprocess.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

/// Starts the script with the other end of `requests` as its input.
child_process start(const std::filesystem::path& root, const std::filesystem::path& script, int threads,
                    unique_fd& requests) {
  int ends[2];
  check_posix(::pipe2(ends, O_CLOEXEC), "make a pipe");
  unique_fd input(ends[0]);
  requests = unique_fd(ends[1]);
  auto command = torch_command(root, script, threads);
  command.insert(command.end(), {"--threads", std::to_string(threads)});
  return child_process({.program = find_program(command.front()),
                        .arguments = command,
                        .environment = environment_with({}),
                        .input = input.get()});
}

std::string read_all(int fd) {
  std::string text;
  for (char piece; ::read(fd, &piece, 1) == 1;) text += piece;
  return text;
}

}  // namespace

torch_kernels::torch_kernels(const std::filesystem::path& root, const std::filesystem::path& script,
                             int threads)
    : process_(start(root, script, threads, requests_)), answers_(process_.take_output()) {
  next_answer();  // it is ready
}

std::optional<double> torch_kernels::seconds_of(const kernel_case& of) {
  auto request =
      nlohmann::json{{"kernel", of.name}, {"extents", of.extents.extents()}, {"dtype", to_string(of.type)}}
          .dump() +
      "\n";
  check_posix(::write(requests_.get(), request.data(), request.size()), "ask PyTorch");
  auto seconds = next_answer().at("seconds");
  return seconds.is_null() ? std::nullopt : std::optional(seconds.get<double>());
}

nlohmann::json torch_kernels::next_answer() {
  std::string line;
  for (char piece = 0; piece != '\n' && ::read(answers_.get(), &piece, 1) == 1;) line += piece;
  auto answer = nlohmann::json::parse(line, nullptr, false);
  if (!answer.is_object())
    throw std::runtime_error("PyTorch's process ended: " + line + read_all(process_.take_errors().get()));
  return answer;
}

}  // namespace troupe::bench
