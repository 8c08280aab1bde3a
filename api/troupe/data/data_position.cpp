#include "troupe/data/data_position.hpp"

#include <limits>
#include <vector>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

constexpr std::int64_t position_version = 1;
constexpr std::int64_t position_numbers = 8;

}  // namespace

tensor data_position::to_tensor() const {
  std::vector<std::int64_t> numbers{position_version,
                                    static_cast<std::int64_t>(epoch),
                                    samples_done,
                                    samples_per_epoch,
                                    static_cast<std::int64_t>(seed),
                                    num_replicas,
                                    static_cast<std::int64_t>(order_hash),
                                    0};
  return tensor::from(numbers, {position_numbers});
}

data_position data_position::from_tensor(const tensor& value) {
  if (!value.defined() || value.dtype() != dtype::i64 || value.shape() != shape{position_numbers})
    throw bad_input("expected the position of a DataLoader, i64[8], found " + describe(value));
  auto numbers = value.values<std::int64_t>();
  if (numbers[0] != position_version)
    throw bad_input("expected the position of a DataLoader of version " + std::to_string(position_version) +
                    ", found version " + std::to_string(numbers[0]) +
                    ": resume it with the version of Troupe that saved it, or begin an epoch");
  if (numbers[1] < 0 || numbers[7] != 0 || numbers[2] < 0 || numbers[2] > numbers[3] || numbers[5] < 1 ||
      numbers[5] > std::numeric_limits<int>::max())
    throw bad_input("expected the position of a DataLoader, found numbers that are none: epoch " +
                    std::to_string(numbers[1]) + ", " + std::to_string(numbers[2]) + " samples of " +
                    std::to_string(numbers[3]) + " done by " + std::to_string(numbers[5]) + " replicas");
  return {static_cast<std::uint64_t>(numbers[1]),
          numbers[2],
          numbers[3],
          static_cast<std::uint64_t>(numbers[4]),
          static_cast<int>(numbers[5]),
          static_cast<std::uint64_t>(numbers[6])};
}

}  // namespace troupe
