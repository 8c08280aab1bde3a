#include <fcntl.h>

#include <bit>
#include <system_error>

#include "troupe/data/record_file.hpp"
#include "troupe/data/record_format.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/snapshot/durable_file.hpp"
#include "troupe/snapshot/open_file.hpp"
#include "troupe/snapshot/snapshot_error.hpp"
#include "troupe/snapshot/temporary_name.hpp"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in memory");

constexpr std::size_t write_buffer_bytes = std::size_t{1} << 20;

template <class Function>
auto with_file_errors(Function call) {
  try {
    return call();
  } catch (const snapshot_error& problem) {
    throw bad_input(problem.what());
  }
}

}  // namespace

/// A file under a temporary name.
struct record_writer::output {
  output(const std::filesystem::path& file, const std::array<char, 8>& magic)
      : final_name(file),
        temporary(file.parent_path() / temporary_name(file.filename().string())),
        out(temporary, O_WRONLY | O_CREAT | O_TRUNC, "write", 0666, file) {
    record_header header{magic, record_version, 0};
    add(std::as_bytes(std::span(&header, 1)));
  }
  ~output() {
    std::error_code ignored;
    if (!temporary.empty()) std::filesystem::remove(temporary, ignored);
  }

  void add(std::span<const std::byte> bytes) {
    if (buffer.size() + bytes.size() > write_buffer_bytes) flush();
    if (bytes.size() > write_buffer_bytes)
      out.write_all(bytes);
    else
      buffer.insert(buffer.end(), bytes.begin(), bytes.end());
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
    require_replaceable(final_name);
    std::error_code problem;
    std::filesystem::rename(temporary, final_name, problem);
    if (problem) fail_on_file("write", final_name, problem.value());
    temporary.clear();
  }

  std::filesystem::path final_name, temporary;
  open_file out;
  std::vector<std::byte> buffer;
};

record_writer::record_writer(std::filesystem::path file) : file_(std::move(file)), end_(record_header_bytes) {
  with_file_errors([&] {
    records_ = std::make_unique<output>(file_, records_magic);
    index_ = std::make_unique<output>(index_of_records(file_), record_index_magic);
  });
}

record_writer::~record_writer() = default;

void record_writer::add(std::span<const std::byte> record) {
  if (!records_) throw std::logic_error("[record_writer] expected add before finish, got it afterwards");
  end_ += record.size();
  record_index_entry entry{end_, record_crc(record), 0};
  with_file_errors([&] {
    records_->add(record);
    index_->add(std::as_bytes(std::span(&entry, 1)));
  });
}

/// An index stands beside complete records only: the old one goes before the records change.
void record_writer::finish() {
  if (!records_) throw std::logic_error("[record_writer] expected finish once, got it twice");
  with_file_errors([&] {
    records_->sync();
    index_->sync();
    remove_durably(index_of_records(file_));
    records_->rename();
    index_->rename();
    sync_folder(file_.parent_path());
  });
  records_.reset();
  index_.reset();
}

}  // namespace troupe
