#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "inspect/job_snapshot.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe {

// A record of a job: JSON lines. The first says what the file is, {"format":"troupe inspect record",
// "version":3}; each other one is a snapshot, {"at_ms":..,"parts":{..}}, with the parts that differ from the
// snapshot before, or, with "whole":true, with all.

/// Writes a record as the job goes on.
class job_record_writer {
 public:
  /// 2: "processes" in place of "nodes"; 3: "commands" in place of "orders", new names of two actors.
  static constexpr int version = 3;
  /// One in so many snapshots is written whole, the others as differences.
  static constexpr std::size_t whole_every = 100;
  /// Replaces the file, which is for its user alone. Throws bad_input where something else stands under its
  /// name, such as a symbolic link or a folder, and where it cannot be made.
  explicit job_record_writer(std::filesystem::path file);
  /// The system has it when this returns. Throws system_failure.
  void add(const job_snapshot& snapshot);

 private:
  void write(const nlohmann::ordered_json& line);
  std::filesystem::path file_;
  posix::unique_fd out_;
  job_snapshot last_;
  std::size_t num_written_ = 0;
};

/// A record that was read.
class job_record {
 public:
  /// Throws bad_input for a file that is none, has another version, or has no snapshot.
  explicit job_record(const std::filesystem::path& file);
  std::size_t size() const { return snapshots_.size(); }
  /// Snapshot `index`, below size().
  job_snapshot at(std::size_t index) const;
  /// Not empty: what of the file was not read, and why.
  const std::string& warning() const { return warning_; }

 private:
  std::vector<nlohmann::ordered_json> snapshots_;  ///< all of the file, in its order
  std::string warning_;
};

}  // namespace troupe
