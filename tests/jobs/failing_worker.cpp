// A process of a job that fails as it is told once all have begun:
//
//   failing_worker RANK throw|bad-input|segfault|exit
#include <csignal>
#include <cstdlib>
#include <string>
#include <troupe/troupe.hpp>

using namespace troupe;

int main(int argc, char** argv) {
  if (argc < 3) return 99;
  int failing_rank = std::atoi(argv[1]);
  std::string how = argv[2];
  return run_program(1, argv, {}, [&](const job_options& options) {
    auto world = World::init(options);
    world.barrier();
    if (world.rank() == failing_rank) {
      if (how == "throw") throw std::runtime_error("the disk said no");
      if (how == "bad-input") throw bad_input("there is no file of that name");
      if (how == "segfault") std::raise(SIGSEGV);
      if (how == "exit") std::_Exit(7);
    }
    world.barrier();
  });
}
