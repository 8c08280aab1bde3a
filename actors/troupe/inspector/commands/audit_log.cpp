#include "troupe/inspector/commands/audit_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/posix/files/safe_file.hpp"
#include "troupe/posix/files/working_directory.hpp"

namespace troupe::actors::inspector {
namespace {

constexpr off_t most_read = 256 << 10;

[[noreturn]] void refuse_audit_log(const std::filesystem::path& file, const std::string& why) {
  throw bad_input("the audit log of --inspect-control, " + file.string() + ", cannot be written: " + why +
                  ". Name another file with --inspect-audit-log FILE");
}

std::string error_text(int error_number) { return std::generic_category().message(error_number); }

}  // namespace

audit_log::audit_log(audit_options options, std::shared_ptr<spdlog::logger> log)
    : options_(std::move(options)), log_(std::move(log)) {
  if (!options_.file.empty()) open();
  writer_ = std::thread([this] { write_later_ones(); });
}

audit_log::~audit_log() {
  {
    std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  arrived_.notify_one();
  writer_.join();
}

void audit_log::make_folder() const {
  auto folder = posix::absolute_path(options_.file).parent_path();
  std::error_code problem;
  std::filesystem::create_directories(folder.parent_path(), problem);
  if (::mkdir(folder.c_str(), options_.folder_mode) != 0 && errno != EEXIST)
    refuse_audit_log(options_.file, "its folder cannot be made: " + error_text(errno));
}

void audit_log::open() {
  const auto& file = options_.file;
  if (options_.folder_mode != 0) make_folder();
  auto opened = posix::open_safely(file, {.mode = 0600, .flags = O_APPEND});
  if (!opened.fd) refuse_audit_log(file, opened.problem);
  fd_ = std::move(opened.fd);
  struct stat found {};
  check_posix(::fstat(fd_.get(), &found), "look at " + file.string());
  char last = '\n';
  is_torn_ = found.st_size > 0 && ::pread(fd_.get(), &last, 1, found.st_size - 1) == 1 && last != '\n';
}

bool audit_log::append(const std::string& line) {
  std::lock_guard lock(writing_);
  return fd_ ? write(line) : write_to_log(line);
}

bool audit_log::write(const std::string& line) {
  auto text = (is_torn_ ? "\n" : "") + line + "\n";
  for (std::size_t done = 0; done < text.size();) {
    auto written = ::write(fd_.get(), text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      is_torn_ = is_torn_ || done > 0;
      log_->error("the audit log {} cannot be written: {}. Commands are refused until it can be",
                  options_.file.string(), error_text(errno));
      return false;
    }
    done += static_cast<std::size_t>(written);
  }
  is_torn_ = false;
  return true;
}

/// Whatever the level of the log is, unless it is off.
bool audit_log::write_to_log(const std::string& line) {
  auto level = std::max(log_->level(), spdlog::level::info);
  log_->log(level, "audit {}", line);
  return level != spdlog::level::off;
}

void audit_log::append_later(std::string line) {
  {
    std::lock_guard lock(mutex_);
    later_.push_back(std::move(line));
  }
  arrived_.notify_one();
}

void audit_log::write_later_ones() {
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [this] { return is_ending_ || !later_.empty(); });
    if (later_.empty()) return;
    auto line = std::move(later_.front());
    later_.pop_front();
    lock.unlock();
    append(line);
    lock.lock();
  }
}

std::string audit_log::newest() const {
  if (!fd_) return {};
  struct stat found {};
  if (::fstat(fd_.get(), &found) != 0) return {};
  auto from = std::max<off_t>(0, found.st_size - most_read);
  std::string text(static_cast<std::size_t>(found.st_size - from), '\0');
  auto read = ::pread(fd_.get(), text.data(), text.size(), from);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, read)));
  // The first line may be cut.
  return from == 0 ? text : text.substr(std::min(text.size(), text.find('\n')));
}

}  // namespace troupe::actors::inspector
