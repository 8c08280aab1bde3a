#include <algorithm>
#include <bit>
#include <cstddef>
#include <system_error>

#include "troupe/data/formats/detail/record_format.hpp"
#include "troupe/data/formats/record_file.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/files/durable_file.hpp"
#include "troupe/files/open_file.hpp"
#include "troupe/files/snapshot_error.hpp"
#include "troupe/files/temporary_name.hpp"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in memory");

constexpr std::size_t write_buffer_bytes = std::size_t{1} << 20;

template <class Function>
auto with_file_errors(Function call) {
  try {
    return call();
  } catch (const files::snapshot_error& problem) {
    throw bad_input(problem.what());
  }
}

}  // namespace

/// A file under a temporary name.
struct record_writer::output {
  output(const std::filesystem::path& file, const std::array<char, 8>& magic)
      : final_name(file),
        temporary(file.parent_path() / files::temporary_name(file.filename().string())),
        out(files::new_file{.path = temporary, .named = file}, "write") {
    detail::record_header header{magic, detail::record_version, 0};
    add(std::as_bytes(std::span(&header, 1)));
  }
  ~output() {
    std::error_code ignored;
    if (!temporary.empty()) std::filesystem::remove(temporary, ignored);
  }

  void add(std::span<const std::byte> bytes) {
    if (buffer.size() + bytes.size() > write_buffer_bytes) flush();
    if (bytes.size() > write_buffer_bytes) return out.write_all(bytes);
    // Not insert(), of which GCC 12 warns without cause.
    auto end = buffer.size();
    buffer.resize(end + bytes.size());
    std::ranges::copy(bytes, buffer.begin() + static_cast<std::ptrdiff_t>(end));
  }
  void flush() {
    out.write_all(buffer);
    buffer.clear();
  }
  void sync() {
    flush();
    out.sync();
  }
  void rename() {
    std::error_code problem;
    std::filesystem::rename(temporary, final_name, problem);
    if (problem) files::fail_on_file("write", final_name, problem.value());
    temporary.clear();
  }

  std::filesystem::path final_name, temporary;
  files::open_file out;
  std::vector<std::byte> buffer;
};

record_writer::record_writer(std::filesystem::path file)
    : file_(std::move(file)), end_(detail::record_header_bytes) {
  with_file_errors([&] {
    files::require_replaceable(file_);
    files::require_replaceable(detail::index_of_records(file_));
    records_ = std::make_unique<output>(file_, detail::records_magic);
    index_ = std::make_unique<output>(detail::index_of_records(file_), detail::record_index_magic);
  });
}

record_writer::~record_writer() = default;

/// After a failure the two files no longer fit each other, so nothing is published.
template <class Function>
void record_writer::write(const char* call, Function change) {
  if (!records_)
    throw std::logic_error("[record_writer] expected " + std::string(call) +
                           " before finish and before anything failed, got it afterwards");
  try {
    with_file_errors(change);
  } catch (...) {
    records_.reset();
    index_.reset();
    throw;
  }
}

void record_writer::add(std::span<const std::byte> record) {
  write("add", [&] {
    end_ += record.size();
    detail::record_index_entry entry{end_, detail::record_crc(record), 0};
    records_->add(record);
    index_->add(std::as_bytes(std::span(&entry, 1)));
  });
}

/// An index stands beside complete records only: the old one goes before the records change, which is the
/// last thing that can be refused.
void record_writer::finish() {
  write("finish", [&] {
    records_->sync();
    index_->sync();
    files::require_replaceable(file_);
    files::require_replaceable(detail::index_of_records(file_));
    files::remove_durably(detail::index_of_records(file_));
    records_->rename();
    files::sync_folder(file_.parent_path());
    index_->rename();
    files::sync_folder(file_.parent_path());
  });
  records_.reset();
  index_.reset();
}

}  // namespace troupe
