// Streams and events. What is asked of a stream is done when somebody waits: for it, for an event,
// or for memory to be freed. Until then streams take turns: for some waits by chance, for some only
// as far as they must, for some all others first. Whatever no event orders is done in one order
// here and in another there.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

namespace emulation {

enum Result {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_FAILED = 719,
    NOT_SUPPORTED = 801,
};

struct Stream;

// A place in a stream, once it was recorded there.
struct Record {
    Stream *stream;
    bool is_done = false;
    Result failure = SUCCESS;
};

struct Event {
    std::shared_ptr<Record> last;
};

struct Work {
    // What must be done first.
    std::shared_ptr<Record> after;
    std::function<Result()> work;
    // Also after a failure.
    bool always = false;
};

// The streams that one thread opened: tests run side by side, and the order in one is not to depend
// on the others.
struct Group {
    std::vector<Stream *> streams;
    std::mt19937 random;
    enum { ANY, AWAITED, OTHERS } first = ANY;
    // How many waits are left of those that go this way: some, so that it is more than a step.
    unsigned left = 0;

    template <class Done> bool work_until(const Stream *awaited, Done is_done);
};

struct Stream {
    std::shared_ptr<Group> group;
    std::deque<Work> queue = {};
    Result failure = SUCCESS;
    bool has_kernels = false;

    void perform(Work work) {
        if (work.after && work.after->failure && !failure) failure = work.after->failure;
        if (!work.work || (failure && !work.always)) return;
        Result result = work.work();
        if (!failure) failure = result;
    }

    void ask(std::function<Result()> work) { queue.push_back(Work{nullptr, std::move(work)}); }

    Result finish() {
        if (!group->work_until(this, [&] { return queue.empty(); })) return LAUNCH_FAILED;
        return failure;
    }
};

// False where what is left waits for what will not be.
template <class Done> bool Group::work_until(const Stream *awaited, Done is_done) {
    if (left-- == 0) {
        first = decltype(first)((first + 1 + random() % 2) % 3);
        left = 4 + random() % 4;
    }
    while (!is_done()) {
        std::vector<Stream *> ready;
        for (Stream *stream : streams)
            if (!stream->queue.empty() && (!stream->queue.front().after || stream->queue.front().after->is_done))
                ready.push_back(stream);
        if (ready.empty()) {
            fprintf(stderr, "emulation: streams wait for each other\n");
            return false;
        }
        size_t at = random() % ready.size();
        for (size_t i = 0; first != ANY && i < ready.size(); i++)
            if ((ready[i] == awaited) == (first == AWAITED)) at = i;
        Stream &next = *ready[at];
        Work work = std::move(next.queue.front());
        next.queue.pop_front();
        next.perform(std::move(work));
    }
    return true;
}

} // namespace emulation
