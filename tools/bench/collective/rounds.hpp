#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace troupe::bench {

/// What a program of processes that measure together is given, as JSON.
struct rounds_options {
  std::string operation;            ///< all_reduce, all_gather, reduce_scatter or p2p
  std::vector<std::int64_t> bytes;  ///< of the whole tensor, one size after the other
  int repeats = 5;                  ///< how often all that is compared is measured, in turn
  bool fresh = false;               ///< owners rewrite their tensors before each call
  std::string probe_file;           ///< that all members can write, probe_bytes for each
  // Of troupe_group_rounds:
  std::string backend = "ucx";
  int ranks = 4;      ///< threads of the backend local
  bool gloo = false;  ///< measure gloo's own calls; the group serves for barriers
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(rounds_options, operation, bytes, repeats, fresh, probe_file,
                                                backend, ranks, gloo)

constexpr std::size_t probe_bytes = 256 << 10;

/// A process that measures, and how it synchronizes with the others, over whatever connects them.
struct measuring_member {
  int rank = 0, size = 1;
  std::function<void()> barrier = nullptr;
  std::function<double(double)> max = nullptr;  ///< the largest of the members' values
};

/// A call of all members, which do it alike.
struct timed_call {
  std::string name;  ///< of its time in a sample
  std::function<void()> call = nullptr;
  std::function<void()> rewrite = nullptr;  ///< by the owner, of what the call works on
  int most_calls = std::numeric_limits<int>::max();
};

/// What is measured with one size: a member's copy of as many bytes, and the operation in one way or more.
struct calls_of_size {
  std::size_t size_bytes = 0;  ///< of the whole tensor
  timed_call copy;
  std::vector<timed_call> operations;
};

/// How many f32 elements a tensor has: at least as many bytes as asked, and as many for each member.
std::int64_t num_elements_of(std::int64_t size_bytes, int num_members);

/// Measures each size and prints {"bytes":..,"samples":[..]} on rank 0, in microseconds (see
/// collective_samples.hpp). A time is the mean of several calls on the slowest member, after one that does
/// not count; that of p2p is half of a call.
void measure_rounds(const rounds_options& options, const measuring_member& self,
                    const std::function<calls_of_size(std::int64_t size_bytes)>& make_calls);

}  // namespace troupe::bench
