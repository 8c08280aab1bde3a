#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "troupe/collective/calls/collective_error.hpp"
#include "troupe/collective/calls/group.hpp"
#include "troupe/collective/calls/operation.hpp"
#include "troupe/collective/rendezvous/store.hpp"

namespace troupe::collective {

/// What a member of a group tells the others about itself when a call has timed out or the group has failed.
/// It is carried by whatever still works then: the control block, messages, or a store.
struct failure_report {
  std::uint64_t sequence = 0;  ///< of the newest collective call, 0: none
  std::string activity =
      "has begun no collective yet";  ///< one line: "is in call 7, all_reduce(sum, f32[4])"
  std::vector<member_index> waits_for = {};
  std::optional<collective_failure> failure =
      std::nullopt;                           ///< why the member aborted the group; nothing: not
  std::vector<world_rank> failed_ranks = {};  ///< if the member knows them
  std::string cause = {};                     ///< of the failure; empty while the member does not know it
};

/// By member; nothing for those without a report.
using member_reports = std::vector<std::optional<failure_report>>;

/// The activity of a member that is in a call, or has finished it and entered no other (sequence 0: none at
/// all).
std::string text_in_call(std::uint64_t sequence, const call_signature& signature);
std::string text_after_call(std::uint64_t sequence, const call_signature& signature);
/// The report with the failure's kind, ranks and cause.
failure_report with_failure(failure_report report, const collective_error& why);

/// As bytes. A long cause is cut, so that the report fits into one eager message.
std::string encode(const failure_report& report);
/// Malformed bytes give a report with meaningless fields.
failure_report decode_failure_report(std::span<const std::byte> bytes);

/// Exchanges failure reports through a store, for libraries whose connections break with the group. Each
/// member puts its own report and reads those of the others. A member without one has ended, is stopped, or
/// cannot reach the store.
class failure_report_store {
 public:
  /// `group` and `keys` outlive it. The group's name and ranks together are used once in `keys`. grace: how
  /// long read_all() waits for reports.
  failure_report_store(const group_description& group, store& keys,
                       std::chrono::milliseconds grace = std::chrono::seconds(2))
      : group_(group), keys_(keys), grace_(grace) {}

  /// Replaces this member's report.
  void put(const failure_report& report);
  /// The reports of all members, this one too. Blocks for the grace time at most.
  member_reports read_all();

 private:
  std::string key(member_index member) const;

  const group_description& group_;
  store& keys_;
  std::chrono::milliseconds grace_;
};

}  // namespace troupe::collective
