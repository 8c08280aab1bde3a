#include "memory_faults.hpp"

#include <csignal>

#include "machine.hpp"

namespace troupe::emulation {
namespace {

struct sigaction handler_before;

// The faulting access is the test's own, so none of the runtime's data is being changed.
void on_fault(int, siginfo_t* what, void*) {
  the_machine().blocks.refuse_access(what->si_addr);
  sigaction(SIGSEGV, &handler_before, nullptr);  // the access is repeated and faults in the previous handler
}

}  // namespace

void watch_memory_faults() {
  struct sigaction now {};
  sigaction(SIGSEGV, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault) return;
  handler_before = now;
  struct sigaction wanted {};
  wanted.sa_sigaction = on_fault;
  wanted.sa_flags = SA_SIGINFO | (now.sa_flags & SA_ONSTACK);
  sigaction(SIGSEGV, &wanted, nullptr);
}

}  // namespace troupe::emulation
