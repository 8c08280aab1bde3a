#include "troupe/posix/files/working_directory.hpp"

#include <string>
#include <system_error>

#include "troupe/error/errors.hpp"

namespace troupe::posix {

std::filesystem::path absolute_path(const std::filesystem::path& path) {
  std::error_code problem;
  auto made = std::filesystem::absolute(path, problem);
  if (!problem) return made;
  auto text = "cannot use '" + path.string() + "', which begins in the working directory: ";
  if (problem != std::errc::no_such_file_or_directory) throw bad_input(text + problem.message());
  throw bad_input(
      text +
      "that was removed while this process was in it. Change to a folder that exists, or give a path "
      "that begins with /");
}

}  // namespace troupe::posix
