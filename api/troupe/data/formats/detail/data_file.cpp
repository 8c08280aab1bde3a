#include "troupe/data/formats/detail/data_file.hpp"

#include <fcntl.h>

#include <algorithm>

#include "troupe/error/errors.hpp"
#include "troupe/files/open_file.hpp"
#include "troupe/files/snapshot_error.hpp"

namespace troupe::detail {
namespace {

template <class Function>
auto with_bad_input(Function call) {
  try {
    return call();
  } catch (const files::snapshot_error& problem) {
    throw bad_input(problem.what());
  }
}

std::int64_t modified_ns(const files::regular_file& file) {
  auto when = file.status().st_mtim;
  return std::int64_t{when.tv_sec} * 1'000'000'000 + when.tv_nsec;
}

}  // namespace

data_file::data_file(std::filesystem::path file) : path_(std::move(file)) {
  with_bad_input([&] {
    files::regular_file first(path_);
    size_bytes_ = first.size_bytes();
    modified_ns_ = modified_ns(first);
  });
}

data_file::~data_file() = default;

void data_file::read_at(std::uint64_t offset, std::span<std::byte> bytes) {
  with_bad_input([&] { opened()->read_at(offset, bytes); });
}

/// In pieces, since Linux cuts each request at the device's read-ahead, by default 128 KiB.
void data_file::will_read(std::uint64_t offset, std::uint64_t size_bytes) {
  constexpr std::uint64_t piece_bytes = 128 << 10;
  with_bad_input([&] {
    auto file = opened();
    for (auto end = std::min(offset + size_bytes, size_bytes_); offset < end; offset += piece_bytes)
      file->advise(offset, std::min(piece_bytes, end - offset), POSIX_FADV_WILLNEED);
  });
}

void data_file::close() {
  std::lock_guard lock(mutex_);
  file_.reset();
}

std::shared_ptr<files::regular_file> data_file::opened() {
  std::lock_guard lock(mutex_);
  if (file_) return file_;
  auto file = std::make_shared<files::regular_file>(path_);
  if (file->size_bytes() != size_bytes_ || modified_ns(*file) != modified_ns_)
    throw bad_input("cannot read " + path_.string() + ": it has changed. Expected " +
                    std::to_string(size_bytes_) + " bytes and no change since, found " +
                    std::to_string(file->size_bytes()) +
                    " bytes, last changed at another time: begin again with the data set as it is now");
  file_ = file;
  return file;
}

}  // namespace troupe::detail
