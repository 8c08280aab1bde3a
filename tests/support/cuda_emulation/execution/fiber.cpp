#include "support/cuda_emulation/execution/fiber.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <new>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(__x86_64__)
#error "the emulation of CUDA kernels switches stacks on x86-64 only"
#endif

// Stores the stack pointer at `from` and continues where `to` was stored.
extern "C" void troupe_emulation_switch(void** from, void* to);
asm(R"(
.text
.globl troupe_emulation_switch
.type troupe_emulation_switch, @function
troupe_emulation_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size troupe_emulation_switch, . - troupe_emulation_switch
)");

namespace troupe::emulation {
namespace {

constexpr std::size_t guard_bytes = 4096, stack_bytes = 256 << 10;
constexpr int saved_registers = 6;

#ifdef __SANITIZE_ADDRESS__
constinit thread_local fiber* left = nullptr;  ///< the fiber that the last switch left
#endif

}  // namespace

fiber::fiber(void (*run)(), unsigned number) {
  memory_ = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory_ == MAP_FAILED || mprotect(memory_, guard_bytes, PROT_NONE) != 0) throw std::bad_alloc();
  auto* bottom = static_cast<std::byte*>(memory_) + guard_bytes;
  bottom_ = bottom;
  constexpr unsigned line_bytes = 64, num_places = 32, lines_apart = 2;
  size_ = stack_bytes - number % num_places * lines_apart * line_bytes;
  auto** top = reinterpret_cast<void**>(bottom + size_);
  *--top = nullptr;  // the return address of `run`, which also aligns its stack
  *--top = reinterpret_cast<void*>(run);
  for (int i = 0; i < saved_registers; ++i) *--top = nullptr;
  stack_pointer_ = top;
}

fiber::~fiber() {
  if (!memory_) return;
#ifdef __SANITIZE_ADDRESS__
  // Functions that never return leave their frames poisoned; the next mapping at this address must not be.
  __asan_unpoison_memory_region(memory_, guard_bytes + stack_bytes);
#endif
  munmap(memory_, guard_bytes + stack_bytes);
}

#ifdef __SANITIZE_ADDRESS__
void fiber::begin() { __sanitizer_finish_switch_fiber(nullptr, &left->bottom_, &left->size_); }

void fiber::switch_between(fiber& from, fiber& to) {
  left = &from;
  __sanitizer_start_switch_fiber(&from.fake_stack_, to.bottom_, to.size_);
  troupe_emulation_switch(&from.stack_pointer_, to.stack_pointer_);
  __sanitizer_finish_switch_fiber(from.fake_stack_, &left->bottom_, &left->size_);
}
#else
void fiber::begin() {}

void fiber::switch_between(fiber& from, fiber& to) {
  troupe_emulation_switch(&from.stack_pointer_, to.stack_pointer_);
}
#endif

}  // namespace troupe::emulation
