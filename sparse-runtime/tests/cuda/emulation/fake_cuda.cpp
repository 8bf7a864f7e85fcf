// A libcuda with one GPU that is the CPU: the functions of the driver that the library calls.
//
// Work is done when it is asked for; that it failed is said by the next synchronisation of its stream, as a GPU does. Memory ends
// where a page ends and the next one is not there, so that a kernel that leaves it is caught, and is filled with NaN.

#include "engine.h"
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <unistd.h>

namespace {

enum Result {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_FAILED = 719,
};

using Address = unsigned long long;

struct Stream {
    Result failure = SUCCESS;
};

struct Module {
    void *object;
    char *shared, *shared_end;
};

struct Function {
    std::string name;
    Module *module;
    void (*entry)(const emulation::Launch &);
};

struct Allocation {
    size_t bytes;
    char *mapping;
    size_t mapped;
};

std::recursive_mutex lock;
std::map<Address, Allocation> allocations;
size_t allocated = 0;

size_t variable(const char *name, size_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, nullptr, 10) : otherwise;
}

size_t memory() { return variable("NNZ_EMULATION_MEMORY", size_t(1) << 30); }

// What the calling thread can allocate at once: tests run side by side.
thread_local size_t most_at_once = ~size_t(0);

emulation::Blocks &blocks() {
    static emulation::Blocks blocks(uint32_t(variable("NNZ_EMULATION_SEED", 0)));
    return blocks;
}

// True where the bytes lie in one allocation.
bool inside(Address address, size_t bytes) {
    auto next = allocations.upper_bound(address);
    if (next == allocations.begin()) return false;
    auto &[start, allocation] = *--next;
    return bytes <= allocation.bytes && address - start <= allocation.bytes - bytes;
}

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
    *stream = new Stream;
    return SUCCESS;
}

Result cuStreamDestroy_v2(Stream *stream) {
    delete stream;
    return SUCCESS;
}

Result cuStreamSynchronize(Stream *stream) { return stream->failure; }

// For tests: the driver has no such function.
void nnz_emulation_most_at_once(size_t bytes) { most_at_once = bytes; }

Result cuMemAllocAsync(Address *address, size_t bytes, Stream *stream) {
    std::lock_guard guard(lock);
    if (stream->failure) return stream->failure;
    if (bytes == 0) return INVALID_VALUE;
    if (bytes > most_at_once || bytes > memory() || allocated + bytes > memory()) return OUT_OF_MEMORY;
    size_t page = size_t(sysconf(_SC_PAGESIZE)), readable = (bytes + page - 1) / page * page, mapped = readable + page;
    void *mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) return OUT_OF_MEMORY;
    char *start = (char *)mapping;
    mprotect(start + readable, page, PROT_NONE);
    memset(start, 0xff, readable);
    // At the end, as far as the alignment of the largest element allows it.
    *address = Address(start + readable - bytes) & ~Address(15);
    allocations[*address] = Allocation{bytes, start, mapped};
    allocated += bytes;
    return SUCCESS;
}

Result cuMemFreeAsync(Address address, Stream *) {
    std::lock_guard guard(lock);
    auto found = allocations.find(address);
    if (found == allocations.end()) return INVALID_VALUE;
    allocated -= found->second.bytes;
    munmap(found->second.mapping, found->second.mapped);
    allocations.erase(found);
    return SUCCESS;
}

Result cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, Stream *stream) {
    std::lock_guard guard(lock);
    if (stream->failure) return stream->failure;
    if (!inside(to, bytes)) return INVALID_VALUE;
    memcpy((void *)to, from, bytes);
    return SUCCESS;
}

Result cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, Stream *stream) {
    std::lock_guard guard(lock);
    if (stream->failure) return stream->failure;
    if (!inside(from, bytes)) return INVALID_VALUE;
    memcpy(to, (const void *)from, bytes);
    return SUCCESS;
}

Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Stream *stream) {
    std::lock_guard guard(lock);
    if (stream->failure) return stream->failure;
    if (!inside(to, bytes) || !inside(from, bytes)) return INVALID_VALUE;
    memmove((void *)to, (const void *)from, bytes);
    return SUCCESS;
}

Result cuMemsetD8Async(Address to, unsigned char value, size_t bytes, Stream *stream) {
    std::lock_guard guard(lock);
    if (stream->failure) return stream->failure;
    if (!inside(to, bytes)) return INVALID_VALUE;
    memset((void *)to, value, bytes);
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
    void *entry = dlsym(module->object, (std::string(name) + "_emulated").c_str());
    if (!entry) return NOT_FOUND;
    *function = new Function{name, module, (void (*)(const emulation::Launch &))entry};
    return SUCCESS;
}

Result cuLaunchKernel(Function *function, unsigned x, unsigned y, unsigned z, unsigned threads_x, unsigned threads_y,
                      unsigned threads_z, unsigned shared, Stream *stream, void **arguments, void **) {
    std::lock_guard guard(lock);
    if (stream->failure) return stream->failure;
    size_t threads = size_t(threads_x) * threads_y * threads_z;
    if (!x || !y || !z || !threads || threads > 1024 || shared || y > 65535) return INVALID_VALUE;
    emulation::Launch launch{{x, y, z}, {threads_x, threads_y, threads_z}, arguments};
    stream->failure = run(function, launch);
    return SUCCESS;
}
}
