// Graphs of launches. What no edge orders is launched in one order here and in another there.
#pragma once

namespace {

struct GraphNode {
    Call call;
    std::vector<GraphNode *> after;
};

struct Graph {
    std::vector<std::unique_ptr<GraphNode>> nodes = {};
};

struct Executable {
    Graph *graph;
    std::map<GraphNode *, Call> calls = {};
};

// As the driver has it.
struct Parameters {
    Function *function;
    unsigned blocks[3], threads[3], shared;
    void **arguments, **extra;
    void *kernel, *context;
};

// False where they are none.
bool read(const Parameters &from, Call &call) {
    dim3 blocks{from.blocks[0], from.blocks[1], from.blocks[2]}, threads{from.threads[0], from.threads[1], from.threads[2]};
    call = Call{from.function, blocks, threads};
    return from.function && !from.kernel && !from.extra && !from.shared && call.take(from.arguments);
}

} // namespace

extern "C" {

Result cuGraphCreate(Graph **graph, unsigned) {
    *graph = new Graph;
    return SUCCESS;
}

Result cuGraphAddKernelNode_v2(GraphNode **node, Graph *graph, GraphNode *const *after, size_t n_after, const Parameters *parameters) {
    std::lock_guard guard(lock);
    auto added = std::make_unique<GraphNode>();
    if (!read(*parameters, added->call)) return INVALID_VALUE;
    if (n_after) added->after.assign(after, after + n_after);
    *node = added.get();
    graph->nodes.push_back(std::move(added));
    return SUCCESS;
}

Result cuGraphInstantiateWithFlags(Executable **executable, Graph *graph, unsigned long long) {
    std::lock_guard guard(lock);
    if (is_to_fail("graph")) return NOT_SUPPORTED;
    *executable = new Executable{graph};
    for (auto &node : graph->nodes) (*executable)->calls[node.get()] = node->call;
    return SUCCESS;
}

Result cuGraphExecKernelNodeSetParams_v2(Executable *executable, GraphNode *node, const Parameters *parameters) {
    std::lock_guard guard(lock);
    auto found = executable->calls.find(node);
    // A node stays one of its kernel.
    if (found == executable->calls.end() || found->second.function != parameters->function) return INVALID_VALUE;
    counts[GRAPH_CHANGES]++;
    return read(*parameters, found->second) ? SUCCESS : INVALID_VALUE;
}

Result cuGraphLaunch(Executable *executable, Stream *stream) {
    std::lock_guard guard(lock);
    if (stream->failure) return stream->failure;
    counts[GRAPH_LAUNCHES]++;
    std::vector<GraphNode *> left, asked;
    for (auto &node : executable->graph->nodes) left.push_back(node.get());
    while (!left.empty()) {
        std::vector<size_t> ready;
        for (size_t i = 0; i < left.size(); i++) {
            auto is_asked = [&](GraphNode *before) { return std::find(asked.begin(), asked.end(), before) != asked.end(); };
            if (std::all_of(left[i]->after.begin(), left[i]->after.end(), is_asked)) ready.push_back(i);
        }
        if (ready.empty()) return INVALID_VALUE;
        size_t next = ready[stream->group->random() % ready.size()];
        executable->calls.at(left[next]).ask_of(stream);
        asked.push_back(left[next]);
        left.erase(left.begin() + long(next));
    }
    return SUCCESS;
}

Result cuGraphExecDestroy(Executable *executable) {
    delete executable;
    return SUCCESS;
}

Result cuGraphDestroy(Graph *graph) {
    delete graph;
    return SUCCESS;
}
}
