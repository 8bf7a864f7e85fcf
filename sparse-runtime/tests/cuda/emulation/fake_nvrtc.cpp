// A libnvrtc that compiles kernels for the CPU with g++. What it calls machine code is a shared
// object that the fake driver loads.
//
// Built with -DHEADERS="…", the folder of cuda_emulation.h, and -DVERSION=…, a number that changes
// with the emulation, so that nothing that another one compiled is taken from the cache.

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

enum Result { SUCCESS = 0, INVALID_PROGRAM = 4, COMPILATION = 6 };

struct Program {
    std::string source, log;
    std::vector<char> image;
};

// The names of the kernels, each declared as `__global__ void name(`.
std::vector<std::string> kernels(const std::string &source) {
    std::vector<std::string> names;
    const std::string word = "__global__ void ";
    for (size_t at = source.find(word); at != std::string::npos; at = source.find(word, at)) {
        at += word.size();
        size_t end = at;
        while (isalnum((unsigned char)source[end]) || source[end] == '_') end++;
        names.push_back(source.substr(at, end - at));
    }
    return names;
}

std::string read(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

const std::string OPTIONS = "-std=gnu++17 -O1 -fPIC -fvisibility=hidden -ffp-contract=off -w ";

// The header, compiled once: half of what a kernel takes. Where that fails, what includes it says
// why.
const std::string &header() {
    static const std::string compiled = [] {
        char folder[] = "/tmp/nnz-emulation-XXXXXX";
        std::string path = HEADERS "/cuda_emulation.h";
        if (!mkdtemp(folder)) return path;
        std::string target = std::string(folder) + "/cuda_emulation.h";
        std::string command = "g++ -x c++-header " + OPTIONS + path + " -o " + target + ".gch 2> /dev/null";
        static std::string built;
        built = target + ".gch";
        atexit([] {
            unlink(built.c_str());
            rmdir(built.substr(0, built.rfind('/')).c_str());
        });
        return system(command.c_str()) == 0 ? target : path;
    }();
    return compiled;
}

} // namespace

extern "C" {

Result nvrtcVersion(int *major, int *minor) {
    *major = 13;
    *minor = VERSION;
    return SUCCESS;
}

Result nvrtcCreateProgram(Program **program, const char *source, const char *, int, const char *const *, const char *const *) {
    *program = new Program{source, "", {}};
    return SUCCESS;
}

Result nvrtcDestroyProgram(Program **program) {
    delete *program;
    *program = nullptr;
    return SUCCESS;
}

Result nvrtcCompileProgram(Program *program, int, const char *const *) {
    char folder[] = "/tmp/nnz-emulation-XXXXXX";
    if (!mkdtemp(folder)) return INVALID_PROGRAM;
    std::string path = folder, text = path + "/kernel.cpp", object = path + "/kernel.so", log = path + "/log";
    {
        std::ofstream file(text);
        file << program->source << "\n";
        for (const std::string &name : kernels(program->source)) file << "NNZ_EMULATED_KERNEL(" << name << ")\n";
    }
    std::string command = "g++ -x c++ -shared " + OPTIONS + "-include " + header() + " -o " + object + " " + text + " 2> " + log;
    int status = system(command.c_str());
    program->log = read(log);
    std::string image = read(object);
    for (const std::string &file : {text, object, log}) unlink(file.c_str());
    rmdir(folder);
    if (status != 0) return COMPILATION;
    // Its length first, since the driver is not told it.
    uint64_t length = image.size();
    program->image.assign((const char *)&length, (const char *)&length + sizeof length);
    program->image.insert(program->image.end(), image.begin(), image.end());
    return SUCCESS;
}

Result nvrtcGetCUBINSize(Program *program, size_t *size) {
    *size = program->image.size();
    return SUCCESS;
}

Result nvrtcGetCUBIN(Program *program, char *image) {
    memcpy(image, program->image.data(), program->image.size());
    return SUCCESS;
}

Result nvrtcGetProgramLogSize(Program *program, size_t *size) {
    *size = program->log.size() + 1;
    return SUCCESS;
}

Result nvrtcGetProgramLog(Program *program, char *log) {
    memcpy(log, program->log.c_str(), program->log.size() + 1);
    return SUCCESS;
}

const char *nvrtcGetErrorString(Result) { return "an error of the emulated compiler"; }
}
