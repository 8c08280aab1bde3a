#include "support/fake_nccl/processes.hpp"

#include <fstream>
#include <type_traits>

#include "troupe/config/environment/launch_environment.hpp"

namespace troupe::fake_nccl {
namespace {

/// A call, and the bytes that the member gives. In a file: the call as it is in memory, their number, they.
struct left_call {
  member_call call;
  std::vector<std::byte> input;
};
static_assert(std::is_trivially_copyable_v<member_call>);

template <class Value>
void put(std::ofstream& out, const Value& value) {
  out.write(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class Value>
Value taken(std::ifstream& in) {
  Value value{};
  in.read(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

/// Appears whole or not at all.
void leave(const std::filesystem::path& file, const launch& calls, int num_members) {
  auto partial = file;
  partial += ".partial";
  std::ofstream out(partial, std::ios::binary);
  put(out, calls.size());
  for (const auto& call : calls) {
    auto size = call.from ? input_bytes_of(call, num_members) : 0;
    put(out, call);
    put(out, size);
    out.write(reinterpret_cast<const char*>(call.from), static_cast<std::streamsize>(size));
  }
  out.close();
  std::filesystem::rename(partial, file);
}

std::vector<left_call> calls_in(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<left_call> calls(taken<std::size_t>(in));
  for (auto& each : calls) {
    each.call = taken<member_call>(in);
    each.input.resize(taken<std::size_t>(in));
    in.read(reinterpret_cast<char*>(each.input.data()), static_cast<std::streamsize>(each.input.size()));
  }
  return calls;
}

}  // namespace

std::optional<std::filesystem::path> file_exchange::folder() {
  return process_environment()("TROUPE_FAKE_NCCL_FOLDER");
}

file_exchange::file_exchange(const std::filesystem::path& folder, const std::string& id, int rank,
                             int num_members)
    : folder_(folder / id), rank_(rank), num_members_(num_members) {
  std::filesystem::create_directories(folder_);
  leave(file_of("member", rank), {}, num_members);
}

std::filesystem::path file_exchange::file_of(const std::string& what, int rank) const {
  return folder_ / (what + "." + std::to_string(rank));
}

bool file_exchange::has_all_members() const {
  for (int rank = 0; rank < num_members_; ++rank)
    if (!std::filesystem::exists(file_of("member", rank))) return false;
  return true;
}

/// A member that has left its calls of a launch has done the one before, whose file it then takes away.
bool file_exchange::attempt(std::uint64_t number, const launch& calls) {
  if (num_left_ == number) {
    leave(file_of(std::to_string(number), rank_), calls, num_members_);
    ++num_left_;
  }
  for (int rank = 0; rank < num_members_; ++rank)
    if (!std::filesystem::exists(file_of(std::to_string(number), rank))) return false;
  std::vector<std::vector<left_call>> left;
  for (int rank = 0; rank < num_members_; ++rank)
    left.push_back(calls_in(file_of(std::to_string(number), rank)));
  std::vector<launch> by_member;
  std::vector<std::vector<std::byte>> outputs;  // of the others, which write their own
  for (int rank = 0; rank < num_members_; ++rank) {
    auto& of_member = by_member.emplace_back();
    auto& of_rank = left[static_cast<std::size_t>(rank)];
    for (std::size_t index = 0; index < of_rank.size(); ++index) {
      auto call = of_rank[index].call;
      call.from = of_rank[index].input.data();
      call.to =
          rank == rank_ ? calls[index].to : outputs.emplace_back(output_bytes_of(call, num_members_)).data();
      of_member.push_back(call);
    }
  }
  if (!carry_out(by_member)) return false;
  if (number > 0) std::filesystem::remove(file_of(std::to_string(number - 1), rank_));
  return true;
}

}  // namespace troupe::fake_nccl
