// What the text of a kernel finds when it is compiled for the CPU: the words of CUDA C++ that
// kernels here use.
//
// Each thread of a block is a fiber of the engine (engine.h), which the fake driver has; a kernel's
// module reaches it through the pointer that the driver gives it when it is loaded. One fiber runs
// at a time, so that atomics are plain loads and stores.
#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>
#include <math.h>
#include <type_traits>
#include <utility>

#define NNZ_EMULATION 1

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
// In a section of its own, which the engine fills with NaN before each block.
#define __shared__ static __attribute__((section("emulated_shared")))

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};

namespace emulation {

// What lanes of a warp do together.
enum class Kind : int { Shuffle, Ballot, Wait };

// Where a thread is.
struct Place {
    dim3 thread, block, threads, blocks;
};

struct Engine {
    // That of the running thread.
    Place *place;
    // Waits for the lanes of the mask. Of a shuffle: the value of the lane `source`; of a ballot:
    // the lanes whose value is not 0.
    uint64_t (*collective)(Kind kind, uint32_t mask, uint64_t value, uint32_t source);
    // Waits for the block.
    void (*barrier)();
};

struct Launch {
    dim3 blocks, threads;
    void **arguments;
};

inline Engine engine;

template <class... P, size_t... I>
void call(void (*kernel)(P...), void **arguments, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_const_t<P> *>(arguments[I])...);
}

template <class... P> void call(void (*kernel)(P...), void **arguments) {
    call(kernel, arguments, std::index_sequence_for<P...>());
}

// The bytes of each parameter; how many there are.
template <class... P> size_t sizes(void (*)(P...), size_t *bytes) {
    ((*bytes++ = sizeof(P)), ...);
    return sizeof...(P);
}

inline uint32_t lane() {
    const Place &at = *engine.place;
    return ((at.thread.z * at.threads.y + at.thread.y) * at.threads.x + at.thread.x) % 32;
}

template <class T> T shuffle(uint32_t mask, T value, uint32_t source) {
    static_assert(sizeof(T) <= 8);
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
    bits = engine.collective(Kind::Shuffle, mask, bits, source);
    memcpy(&value, &bits, sizeof(T));
    return value;
}

} // namespace emulation

#define threadIdx (emulation::engine.place->thread)
#define blockIdx (emulation::engine.place->block)
#define blockDim (emulation::engine.place->threads)
#define gridDim (emulation::engine.place->blocks)

inline void __syncthreads() { emulation::engine.barrier(); }
inline void __syncwarp(uint32_t mask = ~0u) { emulation::engine.collective(emulation::Kind::Wait, mask, 0, 0); }
inline uint32_t __ballot_sync(uint32_t mask, int holds) {
    return uint32_t(emulation::engine.collective(emulation::Kind::Ballot, mask, holds != 0, 0));
}

// `width` is a power of two; a lane beyond the segment gives the caller's own value, as on a GPU.
template <class T> T __shfl_sync(uint32_t mask, T value, uint32_t source, uint32_t width = 32) {
    uint32_t lane = emulation::lane();
    return emulation::shuffle(mask, value, (lane & ~(width - 1)) | (source & (width - 1)));
}
template <class T> T __shfl_xor_sync(uint32_t mask, T value, uint32_t bits, uint32_t width = 32) {
    uint32_t lane = emulation::lane(), source = lane ^ bits;
    return emulation::shuffle(mask, value, (source ^ lane) & ~(width - 1) ? lane : source);
}
template <class T> T __shfl_up_sync(uint32_t mask, T value, uint32_t by, uint32_t width = 32) {
    uint32_t lane = emulation::lane();
    return emulation::shuffle(mask, value, (lane & (width - 1)) < by ? lane : lane - by);
}
template <class T> T __shfl_down_sync(uint32_t mask, T value, uint32_t by, uint32_t width = 32) {
    uint32_t lane = emulation::lane();
    return emulation::shuffle(mask, value, (lane & (width - 1)) + by < width ? lane + by : lane);
}

template <class T> T atomicAdd(T *address, std::common_type_t<T> value) {
    T old = *address;
    *address = old + value;
    return old;
}

template <class T> T atomicMax(T *address, std::common_type_t<T> value) {
    T old = *address;
    if (old < value) *address = value;
    return old;
}

inline int __popc(uint32_t bits) { return __builtin_popcount(bits); }

// Of one type, as in CUDA of numbers of one type; mixed ones are refused here.
template <class T> T min(T a, T b) { return b < a ? b : a; }
template <class T> T max(T a, T b) { return a < b ? b : a; }

// What the fake driver looks for: an entry point a kernel and what it takes, and two for the
// module.
#define NNZ_EMULATED_KERNEL(name)                                                                                      \
    extern "C" __attribute__((visibility("default"))) void name##_emulated(const emulation::Launch &launch) {          \
        emulation::call(name, launch.arguments);                                                                       \
    }                                                                                                                  \
    extern "C" __attribute__((visibility("default"))) size_t name##_emulated_sizes(size_t *bytes) {                    \
        return emulation::sizes(name, bytes);                                                                          \
    }

extern "C" {
extern char __start_emulated_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_emulated_shared[] __attribute__((weak, visibility("hidden")));
__attribute__((visibility("default"), used)) inline void nnz_emulated_attach(const emulation::Engine &engine) {
    emulation::engine = engine;
}
__attribute__((visibility("default"), used)) inline void nnz_emulated_shared(char **start, char **end) {
    *start = __start_emulated_shared;
    *end = __stop_emulated_shared;
}
}
