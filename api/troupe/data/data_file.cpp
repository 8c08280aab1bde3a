#include "troupe/data/data_file.hpp"

#include <fcntl.h>

#include "troupe/error/errors.hpp"
#include "troupe/snapshot/open_file.hpp"
#include "troupe/snapshot/snapshot_error.hpp"

namespace troupe {
namespace {

template <class Function>
auto with_bad_input(Function call) {
  try {
    return call();
  } catch (const snapshot_error& problem) {
    throw bad_input(problem.what());
  }
}

}  // namespace

data_file::data_file(std::filesystem::path file)
    : path_(std::move(file)), size_bytes_(with_bad_input([&] { return regular_file(path_).size_bytes(); })) {}

data_file::~data_file() = default;

void data_file::read_at(std::uint64_t offset, std::span<std::byte> bytes) {
  with_bad_input([&] { opened()->read_at(offset, bytes); });
}

void data_file::will_read(std::uint64_t offset, std::uint64_t size_bytes) {
  advise(offset, size_bytes, POSIX_FADV_WILLNEED);
}

void data_file::done_with(std::uint64_t offset, std::uint64_t size_bytes) {
  advise(offset, size_bytes, POSIX_FADV_DONTNEED);
}

void data_file::advise(std::uint64_t offset, std::uint64_t size_bytes, int advice) {
  with_bad_input([&] { opened()->advise(offset, size_bytes, advice); });
}

void data_file::close() {
  std::lock_guard lock(mutex_);
  file_.reset();
}

std::shared_ptr<regular_file> data_file::opened() {
  std::lock_guard lock(mutex_);
  if (file_) return file_;
  auto file = std::make_shared<regular_file>(path_);
  if (file->size_bytes() != size_bytes_)
    throw bad_input("cannot read " + path_.string() + ": it has changed. Expected " +
                    std::to_string(size_bytes_) + " bytes as before, found " +
                    std::to_string(file->size_bytes()) + ": begin again with the data set as it is now");
  file_ = file;
  return file;
}

}  // namespace troupe
