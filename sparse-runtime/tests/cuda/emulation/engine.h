// Runs the threads of a block as fibers: each until it waits for others or ends.
//
// A collective ends when every lane of its mask that has not ended waits in the same one;
// `__syncthreads` when every thread of the block that has not ended waits there. Where neither can
// come to pass, the block is stuck, which is reported as such. The order in which threads, and
// blocks, run is shuffled by a seed: a kernel that relies on one gives other results under another.
#pragma once

#include "cuda_emulation.h"
#include "fibers.h"
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <sys/mman.h>
#include <vector>

namespace emulation {

enum class State { Ready, Collective, Barrier, Ended };

constexpr size_t STACK = 256 << 10;

struct Fiber {
    Stack context;
    void *stack = nullptr;
    State state = State::Ready;
    dim3 thread;
    Kind kind = Kind::Wait;
    uint32_t mask = 0, source = 0;
    uint64_t value = 0, result = 0;
};

class Blocks {
  public:
    explicit Blocks(uint32_t seed) : random(seed), shuffles(seed != 0) { here = this; }

    // What is wrong with the block, or nothing.
    std::string run(const Launch &launch, const std::function<void()> &kernel, char *shared, size_t shared_bytes) {
        body = &kernel;
        size_t threads = size_t(launch.threads.x) * launch.threads.y * launch.threads.z;
        while (fibers.size() < threads) fibers.push_back(std::make_unique<Fiber>());
        place.threads = launch.threads;
        place.blocks = launch.blocks;
        size_t blocks = size_t(launch.blocks.x) * launch.blocks.y * launch.blocks.z;
        std::vector<size_t> order = ordered(blocks);
        for (size_t block : order) {
            if (shared_bytes) memset(shared, 0xff, shared_bytes);
            place.block = unpacked(block, launch.blocks);
            std::string wrong = run_block(threads);
            if (!wrong.empty()) return wrong;
        }
        return "";
    }

    // Where the thread is that ran last.
    std::string position() const {
        char text[160];
        snprintf(text, sizeof text, "block (%u, %u, %u), thread (%u, %u, %u)", place.block.x, place.block.y, place.block.z,
                 place.thread.x, place.thread.y, place.thread.z);
        return text;
    }

    static Engine interface() { return Engine{&place, collective, barrier}; }

  private:
    static inline Place place;
    static inline Blocks *here;

    std::vector<std::unique_ptr<Fiber>> fibers;
    const std::function<void()> *body = nullptr;
    Stack scheduler;
    Fiber *current = nullptr;
    std::mt19937 random;
    bool shuffles;

    static dim3 unpacked(size_t index, dim3 size) {
        return dim3{unsigned(index % size.x), unsigned(index / size.x % size.y), unsigned(index / size.x / size.y)};
    }

    std::vector<size_t> ordered(size_t number) {
        std::vector<size_t> order(number);
        for (size_t i = 0; i < number; i++) order[i] = i;
        if (shuffles) std::shuffle(order.begin(), order.end(), random);
        return order;
    }

    void begin(Fiber &fiber, size_t index) {
        if (!fiber.stack) {
            fiber.stack = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (fiber.stack == MAP_FAILED) abort();
        }
        fiber.state = State::Ready;
        fiber.thread = unpacked(index, place.threads);
        prepare(fiber.context, fiber.stack, STACK, enter);
    }

    static void enter() {
        (*here->body)();
        here->current->state = State::Ended;
        switch_stacks(&here->current->context, &here->scheduler);
    }

    std::string run_block(size_t threads) {
        for (size_t i = 0; i < threads; i++) begin(*fibers[i], i);
        std::vector<size_t> order = ordered(threads);
        for (;;) {
            bool ran = false;
            for (size_t i : order) {
                Fiber &fiber = *fibers[i];
                if (fiber.state != State::Ready) continue;
                ran = true;
                current = &fiber;
                place.thread = fiber.thread;
                switch_stacks(&scheduler, &fiber.context);
            }
            bool released = false;
            for (size_t warp = 0; warp < threads; warp += 32) {
                std::string wrong = end_collectives(warp, std::min(threads, warp + 32), released);
                if (!wrong.empty()) return wrong;
            }
            if (released) continue;
            size_t ended = count(threads, State::Ended), waiting = count(threads, State::Barrier);
            if (ended == threads) return "";
            if (ended + waiting == threads) {
                for (size_t i = 0; i < threads; i++)
                    if (fibers[i]->state == State::Barrier) fibers[i]->state = State::Ready;
                continue;
            }
            if (!ran) return stuck(threads, waiting);
        }
    }

    size_t count(size_t threads, State state) const {
        size_t number = 0;
        for (size_t i = 0; i < threads; i++) number += fibers[i]->state == state;
        return number;
    }

    std::string stuck(size_t threads, size_t at_barrier) const {
        char text[200];
        size_t collective = count(threads, State::Collective);
        uint32_t mask = 0;
        for (size_t i = 0; i < threads; i++)
            if (fibers[i]->state == State::Collective) mask = fibers[i]->mask;
        snprintf(text, sizeof text, "deadlock: %zu threads wait in a warp collective (mask %08x), %zu at __syncthreads", collective,
                 mask, at_barrier);
        return text;
    }

    std::string end_collectives(size_t first, size_t end, bool &released) {
        for (size_t i = first; i < end; i++) {
            Fiber &asks = *fibers[i];
            if (asks.state != State::Collective) continue;
            if (!(asks.mask >> (i - first) & 1)) return "a warp collective by a lane that is not in its mask";
            bool all = true;
            for (size_t j = first; j < first + 32 && all; j++) {
                if (!(asks.mask >> (j - first) & 1)) continue;
                if (j >= end) return "a warp collective whose mask has lanes beyond the block";
                const Fiber &other = *fibers[j];
                bool there = other.state == State::Collective && other.kind == asks.kind && other.mask == asks.mask;
                all = there || other.state == State::Ended;
            }
            if (!all) continue;
            std::string wrong = end_collective(first, asks.mask, asks.kind);
            if (!wrong.empty()) return wrong;
            released = true;
        }
        return "";
    }

    std::string end_collective(size_t first, uint32_t mask, Kind kind) {
        auto takes_part = [&](uint32_t lane) {
            return (mask >> lane & 1) && fibers[first + lane]->state == State::Collective;
        };
        uint32_t taking_part = 0, ballot = 0;
        for (uint32_t lane = 0; lane < 32; lane++) {
            if (!takes_part(lane)) continue;
            taking_part |= 1u << lane;
            if (fibers[first + lane]->value) ballot |= 1u << lane;
        }
        for (uint32_t lane = 0; lane < 32; lane++) {
            if (!(taking_part >> lane & 1)) continue;
            Fiber &fiber = *fibers[first + lane];
            if (kind == Kind::Shuffle) {
                if (!(taking_part >> fiber.source & 1)) return "a shuffle from a lane that takes no part in it";
                fiber.result = fibers[first + fiber.source]->value;
            } else {
                fiber.result = ballot;
            }
        }
        for (uint32_t lane = 0; lane < 32; lane++)
            if (taking_part >> lane & 1) fibers[first + lane]->state = State::Ready;
        return "";
    }

    static void wait(State state) {
        Fiber *self = here->current;
        self->state = state;
        switch_stacks(&self->context, &here->scheduler);
    }

    static uint64_t collective(Kind kind, uint32_t mask, uint64_t value, uint32_t source) {
        Fiber *self = here->current;
        self->kind = kind;
        self->mask = mask;
        self->value = value;
        self->source = source;
        wait(State::Collective);
        return self->result;
    }

    static void barrier() { wait(State::Barrier); }
};

} // namespace emulation
