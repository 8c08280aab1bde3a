#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "support/fake_nccl/launch.hpp"

namespace troupe::fake_nccl {

/// Members of a communicator in several processes, which leave their calls to each other in files. The folder
/// is that of the environment variable TROUPE_FAKE_NCCL_FOLDER; a process that is killed leaves its files.
class file_exchange {
 public:
  /// None without the variable: the members are threads of this process.
  static std::optional<std::filesystem::path> folder();

  /// Member `rank` of `num_members` of the unique id joins. Throws std::filesystem::filesystem_error.
  file_exchange(const std::filesystem::path& folder, const std::string& id, int rank, int num_members);

  /// Whether all members have joined.
  bool has_all_members() const;
  /// Leaves the calls of this member's launch, with what it gives, once; false until those of all members are
  /// there and match. Then this member's outputs are written.
  bool attempt(std::uint64_t number, const launch& calls);

 private:
  std::filesystem::path file_of(const std::string& what, int rank) const;

  std::filesystem::path folder_;
  int rank_, num_members_;
  std::uint64_t num_left_ = 0;  ///< launches whose calls this member has left
};

}  // namespace troupe::fake_nccl
