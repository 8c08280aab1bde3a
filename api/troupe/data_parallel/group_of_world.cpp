#include "troupe/data_parallel/group_of_world.hpp"

#include <string>

#include "troupe/error/errors.hpp"

namespace troupe {

void refuse_pipeline_replicas(int replicas, const char* user) {
  if (replicas == 1) return;
  throw bad_input("--replicas " + std::to_string(replicas) + " was given, but this program trains with " +
                  user +
                  ", which does not use it: --replicas "
                  "are copies of a Pipeline that a Trainer trains. Leave the option out, and start as many "
                  "processes as the model is to have copies (or set data_parallel_options::num_replicas)");
}

}  // namespace troupe
