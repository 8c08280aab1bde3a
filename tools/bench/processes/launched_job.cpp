#include "bench/processes/launched_job.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>

#include "bench/processes/subprocess.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

/// A file in memory: the launcher never waits when it writes there.
unique_fd make_memory_file() {
  return unique_fd(
      static_cast<int>(check_posix(::memfd_create("troupe-bench", MFD_CLOEXEC), "make a memory file")));
}

std::string content_of(const unique_fd& file) {
  auto size_bytes = check_posix(::lseek(file.get(), 0, SEEK_END), "find the end of a memory file");
  std::string text(static_cast<std::size_t>(size_bytes), '\0');
  check_posix(::pread(file.get(), text.data(), text.size(), 0), "read a memory file");
  return text;
}

launch_options options_of(std::vector<std::string> command, int num_processes, int max_restarts, int output,
                          int errors) {
  launch_options options;
  options.command = std::move(command);
  options.num_processes = num_processes;
  options.max_restarts = max_restarts;
  options.json = true;
  options.output_fd = output;
  options.error_fd = errors;
  return options;
}

}  // namespace

launched_job::launched_job(std::vector<std::string> command, int num_processes, int max_restarts,
                           launch_callbacks callbacks)
    : output_(make_memory_file()),
      errors_(make_memory_file()),
      launcher_(options_of(std::move(command), num_processes, max_restarts, output_.get(), errors_.get()),
                std::move(callbacks)) {}

std::vector<nlohmann::json> launched_job::run() {
  check_exit_code(launcher_.run(), "the measured job", content_of(errors_));
  return json_objects_in(content_of(output_));
}

nlohmann::json launched_job::run_for(const char* key) {
  for (auto& object : run())
    if (object.contains(key)) return std::move(object);
  throw std::runtime_error(std::string("the measured job printed no ") + key);
}

}  // namespace troupe::bench
