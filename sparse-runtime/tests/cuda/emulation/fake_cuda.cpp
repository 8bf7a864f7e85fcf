// A libcuda with one GPU that is the CPU: the functions of the driver that the library calls.
//
// That work failed is said by the next synchronisation of its stream, as a GPU does. Memory ends
// where a page ends and the next one is not there, so that a kernel that leaves it is caught, and
// is filled with NaN.

#include "engine.h"
#include "streams.h"
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <unistd.h>

namespace {

using namespace emulation;

using Address = unsigned long long;

struct Module {
    void *object;
    char *shared, *shared_end;
};

struct Function {
    std::string name;
    Module *module;
    void (*entry)(const emulation::Launch &);
    std::vector<size_t> sizes;
};

struct Allocation {
    size_t bytes;
    char *mapping;
    size_t mapped;
    // Whether the stream that asked for it has come so far.
    bool is_there;
};

std::recursive_mutex lock;
std::map<Address, Allocation> allocations;
size_t allocated = 0;
// Host memory that copies read when they are made, not when they are asked for.
std::map<Address, size_t> pinned;

size_t variable(const char *name, size_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, nullptr, 10) : otherwise;
}

size_t memory() { return variable("NNZ_EMULATION_MEMORY", size_t(1) << 30); }

// What the calling thread can allocate at once: tests run side by side.
thread_local size_t most_at_once = ~size_t(0);

// Which waits the calling thread's calls leave out: of streams with kernels, of those without, of
// the host for events.
enum { WAITS_OF_KERNELS = 1, WAITS_OF_COPIES = 2, WAITS_OF_HOST = 4 };
thread_local int left_out = 0;

// The next kernel of this name that the calling thread launches fails when it runs, as does the
// next copy to the GPU by the name `copy`; by the name `call` that copy is refused, and by the name
// `graph` the next graph that would become executable.
thread_local std::string fails;

bool is_to_fail(const std::string &name) {
    if (fails != name) return false;
    fails.clear();
    return true;
}

// What the calling thread has asked for: waits of the host for a stream and for events that were
// not reached, launches of kernels and of graphs, changes of a graph's launches.
enum { STREAM_WAITS, EVENT_WAITS, LAUNCHES, GRAPH_LAUNCHES, GRAPH_CHANGES, N_COUNTS };
thread_local size_t counts[N_COUNTS] = {};

uint32_t seed() { return uint32_t(variable("NNZ_EMULATION_SEED", 0)); }

emulation::Blocks &blocks() {
    static emulation::Blocks blocks(seed());
    return blocks;
}

// True where the bytes lie in one allocation.
bool inside(Address address, size_t bytes, bool there = false) {
    auto next = allocations.upper_bound(address);
    if (next == allocations.begin()) return false;
    auto &[start, allocation] = *--next;
    return bytes <= allocation.bytes && address - start <= allocation.bytes - bytes && (allocation.is_there || !there);
}

bool is_pinned(Address address, size_t bytes) {
    auto next = pinned.upper_bound(address);
    if (next == pinned.begin()) return false;
    auto &[start, length] = *--next;
    return bytes <= length && address - start <= length - bytes;
}

size_t page() { return size_t(sysconf(_SC_PAGESIZE)); }
size_t whole_pages(size_t bytes) { return (bytes + page() - 1) / page() * page(); }

// Where a fault of a running kernel goes, and the handler of faults that are nobody's here.
sigjmp_buf fault;
thread_local bool runs_kernel = false;
struct sigaction before;

void on_fault(int signal, siginfo_t *info, void *context) {
    if (runs_kernel) siglongjmp(fault, 1);
    if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(signal, info, context);
    ::signal(signal, SIG_DFL);
}

void catch_faults() {
    static bool installed = false;
    if (installed) return;
    installed = true;
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &before);
}

Result run(Function *function, const emulation::Launch &launch) {
    catch_faults();
    const Module &module = *function->module;
    runs_kernel = true;
    if (sigsetjmp(fault, 1)) {
        runs_kernel = false;
        fprintf(stderr, "emulation: `%s` leaves its memory, %s\n", function->name.c_str(), blocks().position().c_str());
        return ILLEGAL_ADDRESS;
    }
    std::string wrong = blocks().run(launch, [&] { function->entry(launch); }, module.shared, module.shared_end - module.shared);
    runs_kernel = false;
    if (wrong.empty()) return SUCCESS;
    fprintf(stderr, "emulation: `%s`, %s: %s\n", function->name.c_str(), blocks().position().c_str(), wrong.c_str());
    return LAUNCH_FAILED;
}

// A kernel with its arguments.
struct Call {
    Function *function;
    dim3 blocks, threads;
    std::vector<std::vector<char>> values = {};

    // Copies the arguments. False where there are no such blocks.
    bool take(void **arguments) {
        size_t n = size_t(threads.x) * threads.y * threads.z;
        if (!blocks.x || !blocks.y || !blocks.z || !n || n > 1024 || blocks.y > 65535) return false;
        values.clear();
        for (size_t bytes : function->sizes) {
            const char *value = (const char *)arguments[values.size()];
            values.emplace_back(value, value + bytes);
        }
        return true;
    }

    void ask_of(Stream *stream) const {
        bool is_to_fail_later = is_to_fail(function->name);
        stream->has_kernels = true;
        stream->ask([call = *this, is_to_fail_later]() mutable {
            if (is_to_fail_later) return LAUNCH_FAILED;
            std::vector<void *> addresses;
            for (std::vector<char> &value : call.values) addresses.push_back(value.data());
            return run(call.function, emulation::Launch{call.blocks, call.threads, addresses.data()});
        });
    }
};

} // namespace

extern "C" {

Result cuInit(unsigned) { return SUCCESS; }

Result cuDriverGetVersion(int *version) {
    *version = 13000;
    return SUCCESS;
}

Result cuDeviceGetCount(int *count) {
    *count = 1;
    return SUCCESS;
}

Result cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return ordinal == 0 ? SUCCESS : INVALID_DEVICE;
}

Result cuDeviceGetName(char *name, int length, int) {
    snprintf(name, size_t(length), "emulated GPU");
    return SUCCESS;
}

Result cuDeviceGetAttribute(int *value, int attribute, int) {
    enum { MAJOR = 75, MINOR = 76 };
    *value = attribute == MAJOR ? 9 : attribute == MINOR ? 0 : 1;
    return SUCCESS;
}

Result cuDeviceTotalMem_v2(size_t *bytes, int) {
    *bytes = memory();
    return SUCCESS;
}

Result cuDevicePrimaryCtxRetain(void **context, int) {
    static int only;
    *context = &only;
    return SUCCESS;
}

Result cuDevicePrimaryCtxRelease_v2(int) { return SUCCESS; }
Result cuCtxSetCurrent(void *) { return SUCCESS; }

Result cuDeviceGetDefaultMemPool(void **pool, int) {
    static int only;
    *pool = &only;
    return SUCCESS;
}

Result cuMemPoolSetAttribute(void *, int, void *) { return SUCCESS; }

Result cuStreamCreate(Stream **stream, unsigned) {
    std::lock_guard guard(lock);
    static thread_local std::shared_ptr<Group> group = std::make_shared<Group>(Group{{}, std::mt19937(seed())});
    *stream = new Stream{group};
    group->streams.push_back(*stream);
    return SUCCESS;
}

Result cuStreamDestroy_v2(Stream *stream) {
    std::lock_guard guard(lock);
    stream->finish();
    auto &streams = stream->group->streams;
    streams.erase(std::find(streams.begin(), streams.end(), stream));
    delete stream;
    return SUCCESS;
}

Result cuStreamSynchronize(Stream *stream) {
    std::lock_guard guard(lock);
    counts[STREAM_WAITS]++;
    return stream->finish();
}

Result cuStreamWaitEvent(Stream *stream, Event *event, unsigned) {
    std::lock_guard guard(lock);
    if (stream->failure) return stream->failure;
    bool is_left_out = left_out & (stream->has_kernels ? WAITS_OF_KERNELS : WAITS_OF_COPIES);
    if (event->last && !is_left_out) stream->queue.push_back(Work{event->last, nullptr});
    return SUCCESS;
}

Result cuEventCreate(Event **event, unsigned) {
    *event = new Event;
    return SUCCESS;
}

Result cuEventDestroy_v2(Event *event) {
    delete event;
    return SUCCESS;
}

Result cuEventRecord(Event *event, Stream *stream) {
    std::lock_guard guard(lock);
    auto record = event->last = std::make_shared<Record>(Record{stream});
    auto work = [record] {
        record->is_done = true;
        record->failure = record->stream->failure;
        return SUCCESS;
    };
    stream->queue.push_back(Work{nullptr, work, true});
    return SUCCESS;
}

Result cuEventSynchronize(Event *event) {
    std::lock_guard guard(lock);
    std::shared_ptr<Record> last = event->last;
    if (!last || left_out & WAITS_OF_HOST) return SUCCESS;
    counts[EVENT_WAITS] += !last->is_done;
    // A stream is there until all of its work is done.
    if (!last->is_done && !last->stream->group->work_until(last->stream, [&] { return last->is_done; })) return LAUNCH_FAILED;
    return last->failure;
}

// For tests: the driver has no such functions.
void nnz_emulation_most_at_once(size_t bytes) { most_at_once = bytes; }
void nnz_emulation_leave_out(int waits) { left_out = waits; }
void nnz_emulation_fail(const char *name) { fails = name; }
size_t nnz_emulation_count(int of) { return counts[of]; }

Result cuMemAllocAsync(Address *address, size_t bytes, Stream *stream) {
    std::lock_guard guard(lock);
    if (stream->failure) return stream->failure;
    if (bytes == 0) return INVALID_VALUE;
    if (bytes > most_at_once || bytes > memory()) return OUT_OF_MEMORY;
    // What is to be freed may be enough.
    if (allocated + bytes > memory() && stream->finish()) return stream->failure;
    if (allocated + bytes > memory()) return OUT_OF_MEMORY;
    size_t readable = whole_pages(bytes), mapped = readable + page();
    void *mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) return OUT_OF_MEMORY;
    char *start = (char *)mapping;
    mprotect(start + readable, page(), PROT_NONE);
    memset(start, 0xff, readable);
    // At the end, as far as the alignment of the largest element allows it.
    Address at = *address = Address(start + readable - bytes) & ~Address(15);
    allocations[at] = Allocation{bytes, start, mapped, false};
    allocated += bytes;
    stream->ask([at] {
        allocations[at].is_there = true;
        return SUCCESS;
    });
    return SUCCESS;
}

Result cuMemFreeAsync(Address address, Stream *stream) {
    std::lock_guard guard(lock);
    if (!allocations.count(address)) return INVALID_VALUE;
    auto work = [address] {
        auto found = allocations.find(address);
        if (found == allocations.end()) return INVALID_VALUE;
        allocated -= found->second.bytes;
        munmap(found->second.mapping, found->second.mapped);
        allocations.erase(found);
        return SUCCESS;
    };
    stream->queue.push_back(Work{nullptr, work, true});
    return SUCCESS;
}

Result cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
    std::lock_guard guard(lock);
    if (bytes == 0) return INVALID_VALUE;
    *memory = mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*memory == MAP_FAILED) return OUT_OF_MEMORY;
    memset(*memory, 0xff, bytes);
    pinned[Address(*memory)] = bytes;
    return SUCCESS;
}

Result cuMemFreeHost(void *memory) {
    std::lock_guard guard(lock);
    auto found = pinned.find(Address(memory));
    if (found == pinned.end()) return INVALID_VALUE;
    // Its place is not given again, to another thread least of all, so that a copy that still reads
    // it is seen. The pages go back.
    mmap(memory, whole_pages(found->second), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    pinned.erase(found);
    return SUCCESS;
}

Result cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, Stream *stream) {
    std::lock_guard guard(lock);
    if (stream->failure) return stream->failure;
    if (!inside(to, bytes) || is_to_fail("call")) return INVALID_VALUE;
    bool is_to_fail_later = is_to_fail("copy");
    std::vector<char> copied;
    // What is not pinned is copied away before the call returns.
    if (!is_pinned(Address(from), bytes)) copied.assign((const char *)from, (const char *)from + bytes);
    stream->ask([=] {
        if (is_to_fail_later || !inside(to, bytes, true)) return ILLEGAL_ADDRESS;
        if (copied.empty() && !is_pinned(Address(from), bytes)) return ILLEGAL_ADDRESS;
        memcpy((void *)to, copied.empty() ? from : copied.data(), bytes);
        return SUCCESS;
    });
    return SUCCESS;
}

Result cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, Stream *stream) {
    std::lock_guard guard(lock);
    if (stream->failure) return stream->failure;
    if (!inside(from, bytes)) return INVALID_VALUE;
    stream->ask([=] {
        if (!inside(from, bytes, true)) return ILLEGAL_ADDRESS;
        memcpy(to, (const void *)from, bytes);
        return SUCCESS;
    });
    return SUCCESS;
}

Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Stream *stream) {
    std::lock_guard guard(lock);
    if (stream->failure) return stream->failure;
    if (!inside(to, bytes) || !inside(from, bytes)) return INVALID_VALUE;
    stream->ask([=] {
        if (!inside(to, bytes, true) || !inside(from, bytes, true)) return ILLEGAL_ADDRESS;
        memmove((void *)to, (const void *)from, bytes);
        return SUCCESS;
    });
    return SUCCESS;
}

Result cuMemsetD8Async(Address to, unsigned char value, size_t bytes, Stream *stream) {
    std::lock_guard guard(lock);
    if (stream->failure) return stream->failure;
    if (!inside(to, bytes)) return INVALID_VALUE;
    stream->ask([=] {
        if (!inside(to, bytes, true)) return ILLEGAL_ADDRESS;
        memset((void *)to, value, bytes);
        return SUCCESS;
    });
    return SUCCESS;
}

Result cuModuleLoadData(Module **module, const void *image) {
    std::lock_guard guard(lock);
    uint64_t length;
    memcpy(&length, image, sizeof length);
    int file = memfd_create("kernel", MFD_CLOEXEC);
    const char *bytes = (const char *)image + sizeof length;
    if (file < 0 || length > 1 << 30) return INVALID_IMAGE;
    for (uint64_t done = 0; done < length;) {
        ssize_t written = write(file, bytes + done, length - done);
        if (written <= 0) return INVALID_IMAGE;
        done += uint64_t(written);
    }
    std::string path = "/proc/self/fd/" + std::to_string(file);
    void *object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!object) fprintf(stderr, "emulation: %s\n", dlerror());
    // The file stays open: another one of the same number would be taken for this module.
    if (!object) return INVALID_IMAGE;
    auto attach = (void (*)(const emulation::Engine &))dlsym(object, "nnz_emulated_attach");
    auto shared = (void (*)(char **, char **))dlsym(object, "nnz_emulated_shared");
    if (!attach || !shared) return INVALID_IMAGE;
    attach(emulation::Blocks::interface());
    *module = new Module{object, nullptr, nullptr};
    shared(&(*module)->shared, &(*module)->shared_end);
    return SUCCESS;
}

Result cuModuleUnload(Module *) { return SUCCESS; }

Result cuModuleGetFunction(Function **function, Module *module, const char *name) {
    std::string entry = std::string(name) + "_emulated";
    auto runs = (void (*)(const emulation::Launch &))dlsym(module->object, entry.c_str());
    auto sizes = (size_t (*)(size_t *))dlsym(module->object, (entry + "_sizes").c_str());
    if (!runs || !sizes) return NOT_FOUND;
    std::vector<size_t> bytes(1024);
    bytes.resize(sizes(bytes.data()));
    *function = new Function{name, module, runs, bytes};
    return SUCCESS;
}

Result cuLaunchKernel(Function *function, unsigned x, unsigned y, unsigned z, unsigned threads_x, unsigned threads_y,
                      unsigned threads_z, unsigned shared, Stream *stream, void **arguments, void **) {
    std::lock_guard guard(lock);
    if (stream->failure) return stream->failure;
    Call call{function, {x, y, z}, {threads_x, threads_y, threads_z}};
    if (shared || !call.take(arguments)) return INVALID_VALUE;
    counts[LAUNCHES]++;
    call.ask_of(stream);
    return SUCCESS;
}
}

#include "graphs.h"
