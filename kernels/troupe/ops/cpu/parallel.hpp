#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>

namespace troupe::cpu {

/// To wake up a team of threads takes as long as one thread takes for some ten thousand elements, and longer
/// where other programs keep the cores busy. With so many elements the team is worth it on an idle machine,
/// whatever an operation does with an element.
constexpr std::int64_t elements_worth_a_team = 1 << 17;

/// In a matrix product or a convolution so many multiplications and additions take as long as one element of
/// another operation.
constexpr std::int64_t multiply_adds_per_element = 32;

/// How many threads an operation over so many elements uses: as many as this thread may use
/// (troupe/ops/threads.hpp), or one if it is too small for a team.
int threads_for(std::int64_t elements);

/// Runs `run(context, index)` for indices [0, count), each once, on `threads_for(elements)` threads;
/// `elements` is how many all of them together go over. What an index does must not depend on the others, so
/// that the number of threads changes no bit.
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
