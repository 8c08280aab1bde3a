#include "troupe/ops/threads.hpp"

#include <string>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

thread_local int of_this_thread = 1;

}  // namespace

void set_num_threads(int num_threads) {
  if (num_threads < 1) throw_invalid("set_num_threads", "num_threads >= 1", std::to_string(num_threads));
  of_this_thread = num_threads;
}

int num_threads() { return of_this_thread; }

}  // namespace troupe
