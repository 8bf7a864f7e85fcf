// Stacks that take turns. `swapcontext` asks the operating system for the mask of signals each
// time, which was half of the time of all tests: where the instructions are written here it is not
// used.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)

namespace emulation {

struct Stack {
    void *top = nullptr;
};

// Goes on with the other stack where that was left. There is no call and no return in it: the
// processor foresees where a jump leads, and a return on another stack than that of the call it
// does not.
__attribute__((always_inline)) inline void switch_stacks(Stack *from, const Stack *to) {
    asm volatile("leaq 1f(%%rip), %%rax\n\t"
                 // Below what a function may have there without saying so.
                 "leaq -128(%%rsp), %%rsp\n\t"
                 "pushq %%rbp\n\t pushq %%rbx\n\t pushq %%rax\n\t"
                 "movq %%rsp, (%%rdi)\n\t movq (%%rsi), %%rsp\n\t"
                 "popq %%rax\n\t jmp *%%rax\n"
                 "1:\n\t"
                 "popq %%rbx\n\t popq %%rbp\n\t"
                 "leaq 128(%%rsp), %%rsp"
                 : "+D"(from), "+S"(to)
                 :
                 : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3",
                   "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
                   "memory", "cc");
}

// Calls a function, which never returns, on a stack when that is switched to.
inline void prepare(Stack &stack, void *memory, size_t bytes, void (*function)()) {
    uintptr_t end = (reinterpret_cast<uintptr_t>(memory) + bytes) & ~uintptr_t(15);
    void **place = reinterpret_cast<void **>(end) - 2;
    place[0] = reinterpret_cast<void *>(function);
    place[1] = nullptr;
    stack.top = place;
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
