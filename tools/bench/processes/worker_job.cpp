#include "bench/processes/worker_job.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <sstream>
#include <stdexcept>

#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

constexpr int bad_input_code = 2;

/// A file in memory: the launcher writes to it without ever waiting.
int make_memory_file() {
  return static_cast<int>(check_posix(::memfd_create("troupe-bench", MFD_CLOEXEC), "make a memory file"));
}

std::string content_of(int fd) {
  auto size_bytes = check_posix(::lseek(fd, 0, SEEK_END), "find the end of a memory file");
  std::string text(static_cast<std::size_t>(size_bytes), '\0');
  check_posix(::pread(fd, text.data(), text.size(), 0), "read a memory file");
  return text;
}

std::vector<nlohmann::json> objects_in(const std::string& text) {
  std::vector<nlohmann::json> found;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (auto object = nlohmann::json::parse(line, nullptr, false); object.is_object())
      found.push_back(std::move(object));
  return found;
}

}  // namespace

worker_job::worker_job(std::vector<std::string> command, int num_processes, launch_callbacks callbacks)
    : callbacks_(std::move(callbacks)), output_(make_memory_file()), errors_(make_memory_file()) {
  options_.command = std::move(command);
  options_.num_processes = num_processes;
  options_.max_restarts = 0;
  options_.json = true;
  options_.output_fd = output_;
  options_.error_fd = errors_;
}

worker_job::~worker_job() {
  ::close(output_);
  ::close(errors_);
}

std::vector<nlohmann::json> worker_job::run() {
  launcher_ = std::make_unique<launcher>(options_, callbacks_);
  auto code = launcher_->run();
  if (code == bad_input_code)
    throw bad_input("the measured program refused its input:\n" + content_of(errors_));
  if (code != 0)
    throw std::runtime_error("the measured job ended with exit code " + std::to_string(code) + ":\n" +
                             content_of(errors_));
  return objects_in(content_of(output_));
}

}  // namespace troupe::bench
