#include "bench/data_parallel/throttled_backend.hpp"

#include <algorithm>

#include "troupe/error/errors.hpp"

namespace troupe {

double link_bytes(const collective::call_signature& signature, int num_members) {
  auto all = static_cast<double>(signature.count) * static_cast<double>(size_bytes(signature.type));
  auto of_others = static_cast<double>(num_members - 1) / num_members;
  switch (signature.kind) {
    case collective::collective_kind::all_reduce:
      return 2 * of_others * all;
    case collective::collective_kind::reduce_scatter:
    case collective::collective_kind::all_gather:
    case collective::collective_kind::gather:
    case collective::collective_kind::scatter:
    case collective::collective_kind::all_to_all:
      return of_others * all;
    case collective::collective_kind::broadcast:
    case collective::collective_kind::reduce:
    case collective::collective_kind::send:
    case collective::collective_kind::receive:
      return num_members > 1 ? all : 0;
    case collective::collective_kind::barrier:
      break;
  }
  return 0;
}

communicator_options over_link(int num_members, double bytes_per_second) {
  communicator_options options;
  options.decorate = [num_members, bytes_per_second](std::unique_ptr<collective::collective_backend> below) {
    return std::make_unique<throttled_backend>(std::move(below), num_members, bytes_per_second);
  };
  return options;
}

throttled_backend::throttled_backend(std::unique_ptr<collective::collective_backend> below, int num_members,
                                     double bytes_per_second)
    : below_(std::move(below)), num_members_(num_members), bytes_per_second_(bytes_per_second) {
  if (!(bytes_per_second > 0))
    throw_invalid("throttled_backend", "bytes_per_second > 0", std::to_string(bytes_per_second));
}

collective::algorithm throttled_backend::run(const collective::collective_operation& what,
                                             std::uint64_t sequence) {
  auto below = below_->run(what, sequence);
  co_await finished(below);
  std::chrono::duration<double> needed(link_bytes(what.signature, num_members_) / bytes_per_second_);
  auto moved = std::max(free_from_, clock::now()) + std::chrono::duration_cast<clock::duration>(needed);
  free_from_ = moved;
  co_await collective::until([moved] { return clock::now() >= moved; });
}

std::chrono::microseconds throttled_backend::limited(std::chrono::microseconds at_most) const {
  auto left = std::chrono::ceil<std::chrono::microseconds>(free_from_ - clock::now());
  return left.count() > 0 ? std::min(at_most, left) : at_most;
}

void throttled_backend::sleep(std::chrono::microseconds at_most) { below_->sleep(limited(at_most)); }

bool throttled_backend::add_wake_sources(collective::wake_sources& sources) {
  sources.at_most = limited(sources.at_most);
  return below_->add_wake_sources(sources);
}

}  // namespace troupe
