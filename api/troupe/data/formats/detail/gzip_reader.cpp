#include "troupe/data/formats/detail/gzip_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "troupe/error/errors.hpp"

namespace troupe::detail {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{256} << 10;
constexpr int gzip_only = 16 + MAX_WBITS;  // as inflateInit2 has it

bool begins_a_gzip_stream(const z_stream& stream) {
  return stream.avail_in >= 2 && stream.next_in[0] == 0x1f && stream.next_in[1] == 0x8b;
}

}  // namespace

gzip_reader::gzip_reader(const std::filesystem::path& path) : name_(path.string()), buffer_(buffer_bytes) {
  std::error_code problem;
  size_bytes_ = std::filesystem::file_size(path, problem);
  if (problem) fail("cannot be read: " + problem.message());
  errno = 0;
  file_.open(path, std::ios::binary);
  if (!file_) fail(std::string("cannot be opened: ") + std::strerror(errno));
  if (!refill()) fail("is empty");
  is_gzipped_ = begins_a_gzip_stream(stream_);
  if (is_gzipped_ && ::inflateInit2(&stream_, gzip_only) != Z_OK) throw std::bad_alloc();
}

gzip_reader::~gzip_reader() {
  if (is_gzipped_) ::inflateEnd(&stream_);
}

void gzip_reader::fail(const std::string& problem) const { throw bad_input("'" + name_ + "' " + problem); }

/// Reads more input after the rest of the buffer; returns false at the end of the file.
bool gzip_reader::refill() {
  auto left = std::copy_n(stream_.next_in, stream_.avail_in, reinterpret_cast<Bytef*>(buffer_.data()));
  auto kept = left - reinterpret_cast<Bytef*>(buffer_.data());
  errno = 0;
  file_.read(buffer_.data() + kept, static_cast<std::streamsize>(buffer_.size()) - kept);
  if (file_.bad()) fail(std::string("cannot be read: ") + std::strerror(errno));
  stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
  stream_.avail_in = static_cast<uInt>(kept + file_.gcount());
  return file_.gcount() > 0;
}

std::size_t gzip_reader::read(std::span<std::byte> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    if (stream_.avail_in == 0 && !refill()) {
      if (is_gzipped_ && !stream_has_ended_) fail("is truncated: the gzip stream's end is missing");
      break;
    }
    done += unpack(out.subspan(done));
  }
  return done;
}

/// Decompresses as much as the buffer contains.
std::size_t gzip_reader::unpack(std::span<std::byte> out) {
  constexpr std::size_t max_at_once = std::size_t{1} << 30;  // zlib counts in unsigned int
  auto wanted = std::min(out.size(), max_at_once);
  if (!is_gzipped_) {
    auto count = std::min<std::size_t>(wanted, stream_.avail_in);
    std::memcpy(out.data(), stream_.next_in, count);
    stream_.next_in += count;
    stream_.avail_in -= static_cast<uInt>(count);
    return count;
  }
  if (stream_has_ended_ && !begin_next_stream()) return 0;
  stream_.next_out = reinterpret_cast<Bytef*>(out.data());
  stream_.avail_out = static_cast<uInt>(wanted);
  auto status = ::inflate(&stream_, Z_NO_FLUSH);
  stream_has_ended_ = status == Z_STREAM_END;
  if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
    fail(std::string("is damaged: ") + (stream_.msg ? stream_.msg : ::zError(status)));
  return wanted - stream_.avail_out;
}

/// Begins the next member, if there is one. Zeros to the end of the file are padding, such as tapes and block
/// devices need, and are skipped, as gzip does.
bool gzip_reader::begin_next_stream() {
  if (stream_.avail_in < 2) refill();
  if (begins_a_gzip_stream(stream_)) {
    ::inflateReset(&stream_);
    stream_has_ended_ = false;
    return true;
  }
  do {
    auto all = std::span(stream_.next_in, stream_.avail_in);
    if (std::ranges::any_of(all, [](Bytef value) { return value != 0; }))
      fail("is damaged: it goes on after the gzip stream's end");
    stream_.avail_in = 0;
  } while (refill());
  return false;
}

bool gzip_reader::at_end() {
  std::byte next;
  return read({&next, 1}) == 0;
}

}  // namespace troupe::detail
