//! CUDA graphs: repeated sequences of launches, made by one call.
//!
//! While work is recorded, its launches are not made but compared with those of the previous time.
//! If they are of the same kernels in the same order, they are the nodes of a graph, one after the
//! other. Nodes whose sizes, addresses or numbers of blocks differ are updated, so that batches of
//! any sizes use one graph. Otherwise each is launched by itself.

use super::error::refused;
use super::launch::Call;
use super::{CudaError, Gpu};
use cudarc::driver::sys;
use std::cell::RefCell;

/// Fewer launches are not worth a graph.
const LEAST: usize = 3;

/// The launches of some work that is done time after time.
#[derive(Default)]
pub struct Replay {
    /// What is made of the nodes, dropped before their kernels.
    graph: Option<Graph>,
    nodes: Vec<Node>,
    /// After what was loaded into it.
    gpu: Option<Gpu>,
}

/// A launch of the last time.
struct Node {
    call: Call,
    /// Whether the graph has another one.
    is_changed: bool,
}

/// What a thread records.
struct Recording {
    nodes: Vec<Node>,
    /// How many launches there were.
    len: usize,
    /// Whether they are of the kernels of the last time.
    is_alike: bool,
    /// Whether something was asked for that is not a launch, which the launches before it must not
    /// wait for.
    is_interrupted: bool,
    gpu: Gpu,
}

thread_local! {
    static RECORDING: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

impl Gpu {
    /// Does some work, whose launches are made when it ends: by one call where they are alike those
    /// of the last time. What fails then is kept for the next synchronisation, as what fails in a
    /// kernel.
    ///
    /// Whatever else the work asks the GPU for, such as memory or a copy, comes after the launches
    /// before it: these, and those after it, are then made one by one.
    pub fn replay<R>(&self, replay: &mut Replay, work: impl FnOnce() -> R) -> R {
        match self.record(replay) {
            None => work(),
            Some(recorded) => {
                let result = work();
                recorded.end(replay);
                result
            }
        }
    }

    /// Begins to record, unless launches are to be made one by one.
    fn record(&self, replay: &mut Replay) -> Option<Recorded> {
        let records = RECORDING.with_borrow(|recording| recording.is_some());
        if records || self.graphs_refused().is_some() || self.waits_for_each_kernel() {
            return None;
        }
        let nodes = std::mem::take(&mut replay.nodes);
        let gpu = self.clone();
        let new = Recording { nodes, len: 0, is_alike: true, is_interrupted: false, gpu };
        RECORDING.set(Some(new));
        Some(Recorded)
    }

    /// Notes a launch. Whether it is made later.
    pub(super) fn records(&self, call: &Call) -> bool {
        RECORDING.with_borrow_mut(|recording| {
            recording.as_mut().filter(|of| of.gpu.is(self)).is_some_and(|recording| {
                recording.note(call);
                !recording.is_interrupted
            })
        })
    }

    /// Makes the launches that are made later, since something else is asked for now.
    pub(super) fn interrupt(&self) {
        let launched = RECORDING.with_borrow_mut(|recording| {
            let recording = recording.as_mut().filter(|of| of.gpu.is(self) && !of.is_interrupted);
            recording.map_or(Ok(()), |recording| {
                recording.is_interrupted = true;
                recording.launch_each()
            })
        });
        if let Err(error) = launched {
            self.fail(error);
        }
    }
}

impl Recording {
    fn note(&mut self, call: &Call) {
        match self.nodes.get_mut(self.len) {
            Some(node) if node.call.is_of_kernel_of(call) => {
                if !node.call.is_same(call) {
                    node.call = call.clone();
                    node.is_changed = true;
                }
            }
            other => {
                self.is_alike = false;
                let new = Node { call: call.clone(), is_changed: true };
                match other {
                    Some(node) => *node = new,
                    None => self.nodes.push(new),
                }
            }
        }
        self.len += 1;
    }

    fn launch_each(&mut self) -> Result<(), CudaError> {
        let mut launches = self.nodes[..self.len].iter_mut();
        // SAFETY: what is recorded is what `Launch::launch` was called for, by somebody who sees to
        // it.
        launches.try_for_each(|node| unsafe { node.call.launch(&self.gpu) })
    }
}

/// That this thread records; ends a recording whose work panicked.
struct Recorded;

impl Recorded {
    fn end(self, replay: &mut Replay) {
        std::mem::forget(self);
        if let Some(recording) = RECORDING.take() {
            replay.end(recording);
        }
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        RECORDING.set(None);
    }
}

impl Replay {
    /// Makes the launches, unless they were made.
    fn end(&mut self, mut recording: Recording) {
        let was_alike = recording.is_alike && recording.len == recording.nodes.len();
        recording.nodes.truncate(recording.len);
        if !was_alike {
            self.graph = None;
        }
        if recording.is_interrupted {
            // They were made.
        } else if !was_alike || recording.len < LEAST {
            if let Err(error) = recording.launch_each() {
                recording.gpu.fail(error);
            }
        } else if let Err(error) = self.launch(&mut recording) {
            self.graph = None;
            match recording.launch_each() {
                // The GPU does all but graphs.
                Ok(()) => recording.gpu.refuse_graphs(error),
                Err(error) => recording.gpu.fail(error),
            }
        }
        self.nodes = recording.nodes;
        self.gpu = Some(recording.gpu);
    }

    fn launch(&mut self, recording: &mut Recording) -> Result<(), CudaError> {
        recording.gpu.enter()?;
        let graph = match &mut self.graph {
            Some(graph) => {
                graph.change(&mut recording.nodes)?;
                graph
            }
            none => none.insert(Graph::new(&mut recording.nodes)?),
        };
        graph.launch(&recording.gpu)
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        // What belongs to a context is given back there. A failure leaves nothing to be done.
        let _ = self.gpu.as_ref().map(Gpu::enter);
    }
}

/// Launches in order, which are made by one call.
struct Graph {
    graph: sys::CUgraph,
    nodes: Vec<sys::CUgraphNode>,
    /// None while it is being made.
    executable: Option<sys::CUgraphExec>,
}

// SAFETY: graphs may be used from any thread by one at a time, as they are: they are borrowed
// exclusively by whoever uses them.
unsafe impl Send for Graph {}
// SAFETY: as above; nothing is done with one that is shared.
unsafe impl Sync for Graph {}

impl Graph {
    /// A graph of launches, each after the one before it.
    fn new(launches: &mut [Node]) -> Result<Self, CudaError> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the call writes a handle.
        unsafe { sys::cuGraphCreate(&mut handle, 0) }.result().map_err(refused("cuGraphCreate"))?;
        let mut graph = Graph { graph: handle, nodes: Vec::new(), executable: None };
        graph.nodes.reserve_exact(launches.len());
        for launch in launches {
            let mut node = std::ptr::null_mut();
            let before = graph.nodes.last().map_or(std::ptr::null(), std::ptr::from_ref);
            let n_before = usize::from(!before.is_null());
            launch
                .call
                .with_parameters(|parameters| {
                    // SAFETY: the graph is there, as is the node before this one; the call copies
                    // the parameters, whose arguments are those of the kernel.
                    unsafe {
                        sys::cuGraphAddKernelNode_v2(
                            &mut node, handle, before, n_before, parameters,
                        )
                    }
                })
                .result()
                .map_err(refused("cuGraphAddKernelNode"))?;
            graph.nodes.push(node);
            launch.is_changed = false;
        }
        let mut executable = std::ptr::null_mut();
        // SAFETY: the graph is there; the call writes a handle.
        unsafe { sys::cuGraphInstantiateWithFlags(&mut executable, handle, 0) }
            .result()
            .map_err(refused("cuGraphInstantiateWithFlags"))?;
        graph.executable = Some(executable);
        Ok(graph)
    }

    /// Gives nodes what their launches are given now.
    fn change(&mut self, launches: &mut [Node]) -> Result<(), CudaError> {
        let Some(executable) = self.executable else { return Ok(()) };
        for (node, launch) in self.nodes.iter().zip(launches) {
            if !std::mem::take(&mut launch.is_changed) {
                continue;
            }
            launch
                .call
                .with_parameters(|parameters| {
                    // SAFETY: the node is one of the graph that was made executable, which is
                    // there; launches of it that were asked for before keep what they have, and the
                    // call copies the parameters.
                    unsafe { sys::cuGraphExecKernelNodeSetParams_v2(executable, *node, parameters) }
                })
                .result()
                .map_err(refused("cuGraphExecKernelNodeSetParams"))?;
        }
        Ok(())
    }

    fn launch(&self, gpu: &Gpu) -> Result<(), CudaError> {
        let Some(executable) = self.executable else { return Ok(()) };
        // SAFETY: the graph is there. What its kernels read and write is that of launches, which
        // `Launch::launch` was called for.
        unsafe { sys::cuGraphLaunch(executable, gpu.launches()) }
            .result()
            .map_err(refused("cuGraphLaunch"))
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and nobody has them any more; launches that were asked for are
        // made before the driver frees them. A failure leaves nothing to be done.
        unsafe {
            if let Some(executable) = self.executable {
                let _ = sys::cuGraphExecDestroy(executable);
            }
            let _ = sys::cuGraphDestroy(self.graph);
        }
    }
}

/// How many launches there were the last time, and whether they were made by one call.
impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = if self.graph.is_some() { "a graph" } else { "one by one" };
        write!(f, "{} launches, {how}", self.nodes.len())
    }
}
