#include "memory_faults.hpp"

#include <csignal>

#include "machine.hpp"

namespace troupe::emulation {
namespace {

struct sigaction handler_before;

// Faults are raised by the access itself, while none of the runtime's own data is being changed.
void on_fault(int, siginfo_t* what, void*) {
  the_machine().blocks.refuse_access(what->si_addr);
  sigaction(SIGSEGV, &handler_before, nullptr);  // the access is made again, and faults there
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
