// Stacks that take turns. `swapcontext` asks the operating system for the mask of signals each time, which was half of the time of all tests:
// where the instructions are written here it is not used.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)

namespace emulation {

struct Stack {
    void *top = nullptr;
};

// Leaves what a function must keep on the stack in use, and goes on with the other.
__attribute__((naked, noinline, unused)) static void switch_stacks(Stack *, const Stack *) {
    asm("pushq %rbp\n\t pushq %rbx\n\t pushq %r12\n\t pushq %r13\n\t pushq %r14\n\t pushq %r15\n\t"
        "movq %rsp, (%rdi)\n\t movq (%rsi), %rsp\n\t"
        "popq %r15\n\t popq %r14\n\t popq %r13\n\t popq %r12\n\t popq %rbx\n\t popq %rbp\n\t ret");
}

// Calls a function, which never returns, on a stack when that is switched to.
inline void prepare(Stack &stack, void *memory, size_t bytes, void (*function)()) {
    uintptr_t end = (reinterpret_cast<uintptr_t>(memory) + bytes) & ~uintptr_t(15);
    void **place = reinterpret_cast<void **>(end) - 2;
    place[0] = reinterpret_cast<void *>(function);
    place[1] = nullptr;
    for (int saved = 1; saved <= 6; saved++) place[-saved] = nullptr;
    stack.top = place - 6;
}

} // namespace emulation

#else

#include <ucontext.h>

namespace emulation {

using Stack = ucontext_t;

inline void switch_stacks(Stack *from, const Stack *to) { swapcontext(from, to); }

inline void prepare(Stack &stack, void *memory, size_t bytes, void (*function)()) {
    getcontext(&stack);
    stack.uc_stack.ss_sp = memory;
    stack.uc_stack.ss_size = bytes;
    stack.uc_link = nullptr;
    makecontext(&stack, function, 0);
}

} // namespace emulation

#endif
