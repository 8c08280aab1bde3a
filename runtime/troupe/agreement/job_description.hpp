#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::agreement {

/// One property that must be equal in all members of a job: {"batch", "256"}. An empty value means unknown
/// and agrees with every other.
struct described_field {
  std::string name;
  std::string value;
  bool operator==(const described_field&) const = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, value);
  }
};

/// A job or call as one member of the job sees it, as ordered fields; compared between all members.
class job_description {
 public:
  void add(std::string name, std::string value);
  const std::vector<described_field>& fields() const { return fields_; }
  /// Of all names and values in their order; 0 only if there are none. What agrees in it agrees in all
  /// fields.
  std::uint64_t hash() const;
  bool operator==(const job_description&) const = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(fields_);
  }

 private:
  std::vector<described_field> fields_;
};

/// In which fields the members' descriptions differ, who has what: "microbatches: rank 1 has 4, ranks 0 and 2
/// have 8; plan: ..."; none if they agree. What most have comes last; of equal numbers, what the lowest rank
/// has.
std::optional<std::string> description_difference(const std::map<int, job_description>& by_rank);

/// 16 hexadecimal digits by which different bytes show (FNV-1a).
std::string short_hash(std::span<const std::byte> bytes);

}  // namespace troupe::agreement
