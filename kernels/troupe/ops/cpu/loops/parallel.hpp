#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>

namespace troupe::cpu {

/// The minimum number of elements for which a thread team pays off on an idle machine. To wake up a team
/// takes as long as one thread needs for some ten thousand elements, and longer if other programs use the
/// cores.
constexpr std::int64_t elements_worth_a_team = 1 << 17;

/// The number of multiply-adds of a matrix product or convolution that take as long as one element of another
/// operation.
constexpr std::int64_t multiply_adds_per_element = 32;

/// The number of threads for an operation over `elements` elements: num_threads() (troupe/ops/threads.hpp),
/// or 1 if it is too small for a team.
int threads_for(std::int64_t elements);

/// Calls `run(context, index)` once for each index in [0, count), on `threads_for(elements)` threads;
/// `elements` is the total number of elements of all indices. Indices must be independent, so that the bits
/// do not depend on the number of threads.
void parallel_for(std::int64_t count, std::int64_t elements,
                  void (*run)(const void* context, std::int64_t index), const void* context);

template <class Body>
void parallel_for(std::int64_t count, std::int64_t elements, const Body& body) {
  parallel_for(
      count, elements,
      [](const void* context, std::int64_t index) { (*static_cast<const Body*>(context))(index); },
      std::addressof(body));
}

}  // namespace troupe::cpu
