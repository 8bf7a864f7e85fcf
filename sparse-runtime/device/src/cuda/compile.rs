//! Run-time compilation of kernels: NVRTC compiles texts with words filled in to machine code,
//! which is kept on disk.

use super::CudaError;
use super::formula::formula;
use super::kernel::{Kernel, Module};
use super::signature::signatures;
use cudarc::driver::sys;
use cudarc::nvrtc::{result as nvrtc, sys as nvrtc_sys};
use sparse_core::operators::Operator;
use std::any::Any;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::ffi::{CString, c_char};
use std::fmt;
use std::fmt::Write as _;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The text of some kernels and the words that are filled into it: what is compiled at once.
#[derive(Clone, Copy, Debug)]
pub struct Unit<'a> {
    /// The name of the text's file, for messages.
    pub file: &'static str,
    /// CUDA C++ without includes. What it relies on is in the prelude, `prelude.cuh`.
    pub text: &'static str,
    /// What the text leaves open: macros by name.
    pub words: &'a [(&'static str, Word)],
}

/// The text of several files, one after the other, by their names and texts.
pub fn text_of_files(files: &[(&str, &str)]) -> String {
    files.iter().map(|(name, text)| format!("#line 1 \"{name}\"\n{text}\n")).collect()
}

/// In front of every text of kernels.
const PRELUDE: &str = include_str!("prelude.cuh");

/// What a macro of a text stands for.
#[derive(Clone, Debug)]
pub enum Word {
    /// A number.
    Number(u64),
    /// A type or function.
    Name(&'static str),
    /// A scalar formula of a row of the operator table.
    Formula(&'static Operator, &'static str),
    /// A text that is written when its unit is compiled.
    Source(&'static dyn Source),
    /// Statements or functions that are made for a model.
    Code(Code),
}

/// What a text is written from, and known by: the text itself is made only to be compiled.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a source of a text",
    note = "a text that is not made on the fly is a `Word::Name` or a `Code`"
)]
pub trait Source: Any + fmt::Debug + Send + Sync {
    /// True of a source of the same text.
    fn is(&self, other: &dyn Any) -> bool;

    /// The same number for sources of the same text.
    fn hash(&self) -> u64;

    /// The text, in one line.
    fn text(&self) -> String;
}

/// A part of a text that is made while the program runs.
#[derive(Clone, Debug)]
pub struct Code {
    text: Arc<str>,
    /// Of the text, so that it is not read again by whoever looks for its kernels.
    hash: u64,
}

impl Code {
    /// The text, which becomes one line: it has neither comments nor directives.
    pub fn new(text: &str) -> Self {
        let text: Arc<str> = text.replace('\n', " ").into();
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Code { text, hash: hasher.finish() }
    }
}

impl PartialEq for Code {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.text, &other.text) || self.text == other.text
    }
}

/// What the compiler made of a unit.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// Machine code for one architecture.
    pub image: Vec<u8>,
    /// What the compiler said.
    pub log: String,
}

/// Compiles a unit for an architecture, `sm_90`, which needs no GPU.
///
/// `report` asks for registers and spills of each kernel in the log.
///
/// # Errors
///
/// [`CudaError::CompilerMissing`], [`CudaError::Compile`] with the compiler's words, and
/// [`CudaError::Compiler`].
pub fn compile(unit: &Unit<'_>, architecture: &str, report: bool) -> Result<Compiled, CudaError> {
    version()?;
    compile_source(unit.file, &unit.source(), architecture, report)
}

impl Unit<'_> {
    /// The whole text: words, prelude, kernels.
    fn source(&self) -> String {
        let mut source = String::new();
        for (name, word) in self.words {
            // Writing to a string does not fail.
            let _ = match word {
                Word::Number(number) => writeln!(source, "#define {name} {number}"),
                Word::Name(word) => writeln!(source, "#define {name} {word}"),
                Word::Formula(operator, text) => {
                    writeln!(source, "#define {name} {}", formula(operator, text))
                }
                Word::Source(from) => writeln!(source, "#define {name} {}", from.text()),
                Word::Code(code) => writeln!(source, "#define {name} {}", code.text),
            };
        }
        let Unit { file, text, .. } = self;
        let _ = write!(source, "#line 1 \"prelude.cuh\"\n{PRELUDE}\n#line 1 \"{file}\"\n{text}");
        source
    }

    fn is(&self, file: &str, words: &[(&'static str, Word)]) -> bool {
        let same = |((name, word), (other_name, other)): (&(&str, Word), &(&str, Word))| {
            name == other_name && word == other
        };
        self.file == file
            && self.words.len() == words.len()
            && self.words.iter().zip(words).all(same)
    }

    fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.file.hash(&mut hasher);
        for (name, word) in self.words {
            name.hash(&mut hasher);
            match word {
                Word::Number(number) => number.hash(&mut hasher),
                Word::Name(name) => name.hash(&mut hasher),
                Word::Formula(operator, text) => (operator.name, text).hash(&mut hasher),
                Word::Source(from) => from.hash().hash(&mut hasher),
                Word::Code(code) => code.hash.hash(&mut hasher),
            }
        }
        hasher.finish()
    }
}

/// Formulas are the same where operator and text are.
impl PartialEq for Word {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Word::Number(number), Word::Number(other)) => number == other,
            (Word::Name(name), Word::Name(other)) => name == other,
            (Word::Formula(operator, text), Word::Formula(other, other_text)) => {
                operator.name == other.name && text == other_text
            }
            (Word::Source(from), Word::Source(other)) => from.is(*other as &dyn Any),
            (Word::Code(code), Word::Code(other)) => code == other,
            _ => false,
        }
    }
}

/// The kernels of a GPU that were compiled or loaded so far.
pub(super) struct Modules {
    architecture: String,
    /// By key; of one key there may be several.
    loaded: Mutex<HashMap<u64, Vec<Loaded>>>,
}

/// A unit on the GPU.
struct Loaded {
    file: &'static str,
    words: Vec<(&'static str, Word)>,
    kernels: Vec<Arc<Kernel>>,
}

impl Modules {
    pub(super) fn new(architecture: String) -> Self {
        Modules { architecture, loaded: Mutex::default() }
    }

    /// A kernel of a unit.
    pub(super) fn kernel(
        &self,
        unit: &Unit<'_>,
        name: &'static str,
    ) -> Result<Arc<Kernel>, CudaError> {
        // Each access leaves it whole.
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let units = loaded.entry(unit.key()).or_default();
        let known = units.iter().position(|known| unit.is(known.file, &known.words));
        let position = match known {
            Some(position) => position,
            None => {
                units.push(self.load(unit)?);
                units.len() - 1
            }
        };
        let found = units[position].kernels.iter().find(|kernel| kernel.name == name);
        found
            .cloned()
            .ok_or(CudaError::Launch { kernel: name, code: sys::CUresult::CUDA_ERROR_NOT_FOUND })
    }

    fn load(&self, unit: &Unit<'_>) -> Result<Loaded, CudaError> {
        let source = unit.source();
        let cached = Cached::of(&source, &self.architecture, version()?);
        let module = match cached.as_ref().and_then(Cached::read).map(|image| Module::load(&image))
        {
            Some(Ok(module)) => module,
            // One that the driver refuses is made anew.
            _ => {
                let made = compile_source(unit.file, &source, &self.architecture, false)?;
                let module = Module::load(&made.image)?;
                if let Some(cached) = cached {
                    cached.write(&made.image);
                }
                module
            }
        };
        let module = Arc::new(module);
        let kernels = signatures(unit.text).into_iter().map(|signature| {
            let parameters = signature.parameters.iter().map(|of| unit.filled_in(of)).collect();
            let function = module.function(signature.name)?;
            let module = Arc::clone(&module);
            Ok(Arc::new(Kernel { name: signature.name, parameters, function, _module: module }))
        });
        Ok(Loaded {
            file: unit.file,
            words: unit.words.to_vec(),
            kernels: kernels.collect::<Result<_, _>>()?,
        })
    }
}

impl Unit<'_> {
    /// A type with the names of types that its words are macros for.
    fn filled_in(&self, parameter: &str) -> String {
        let word = |text: &str| {
            self.words.iter().find_map(|(name, word)| match word {
                Word::Name(of) if *name == text => Some(*of),
                _ => None,
            })
        };
        let words: Vec<_> = parameter.split(' ').map(|text| word(text).unwrap_or(text)).collect();
        words.join(" ")
    }
}

/// The version of NVRTC: major and minor.
fn version() -> Result<(i32, i32), CudaError> {
    // Before any other call: those panic where the library is missing.
    // SAFETY: loads a shared library by the compiler's name and nothing else.
    if !unsafe { nvrtc_sys::is_culib_present() } {
        return Err(CudaError::CompilerMissing);
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the library is there, and the call writes two numbers to the addresses given.
    unsafe { nvrtc_sys::nvrtcVersion(&mut major, &mut minor) }
        .result()
        .map_err(not_compiled("nvrtcVersion"))?;
    Ok((major, minor))
}

fn not_compiled(call: &'static str) -> impl Fn(nvrtc::NvrtcError) -> CudaError {
    move |error| CudaError::Compiler { call, code: error.0 }
}

/// A program of the compiler's.
struct Program(nvrtc_sys::nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: created once and not used after.
        let _ = unsafe { nvrtc::destroy_program(self.0) };
    }
}

impl Program {
    fn log(&self) -> Result<String, CudaError> {
        // SAFETY: the program was created and not destroyed.
        let log = unsafe { nvrtc::get_program_log(self.0) }
            .map_err(not_compiled("nvrtcGetProgramLog"))?;
        let bytes: Vec<u8> = log.into_iter().map(|char| char as u8).collect();
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\0').trim().to_owned())
    }

    fn image(&self) -> Result<Vec<u8>, CudaError> {
        let mut size = 0;
        // SAFETY: the program was compiled, and the call writes one number to the address given.
        unsafe { nvrtc_sys::nvrtcGetCUBINSize(self.0, &mut size) }
            .result()
            .map_err(not_compiled("nvrtcGetCUBINSize"))?;
        let mut image = vec![0u8; size];
        // SAFETY: the call writes as many bytes as it said.
        unsafe { nvrtc_sys::nvrtcGetCUBIN(self.0, image.as_mut_ptr().cast::<c_char>()) }
            .result()
            .map_err(not_compiled("nvrtcGetCUBIN"))?;
        Ok(image)
    }
}

/// The library must be there.
fn compile_source(
    file: &'static str,
    source: &str,
    architecture: &str,
    report: bool,
) -> Result<Compiled, CudaError> {
    let failed = |log: String| CudaError::Compile {
        file,
        architecture: architecture.into(),
        log: log.into(),
    };
    let Ok(text) = CString::new(source) else {
        return Err(failed("the text has a byte 0".to_owned()));
    };
    let program = nvrtc::create_program(&text, None).map_err(not_compiled("nvrtcCreateProgram"))?;
    let program = Program(program);
    let mut options = options(architecture);
    if report {
        options.push("--ptxas-options=--verbose".to_owned());
    }
    // SAFETY: the program was created and not destroyed.
    match unsafe { nvrtc::compile_program(program.0, &options) } {
        Ok(()) => Ok(Compiled { image: program.image()?, log: program.log()? }),
        Err(nvrtc::NvrtcError(nvrtc_sys::nvrtcResult::NVRTC_ERROR_COMPILATION)) => {
            Err(failed(program.log()?))
        }
        Err(error) => Err(not_compiled("nvrtcCompileProgram")(error)),
    }
}

/// Multiplication and addition round one after the other, as on the CPU: what a fused one gains is
/// hidden behind memory.
fn options(architecture: &str) -> Vec<String> {
    vec![
        format!("--gpu-architecture={architecture}"),
        "--std=c++17".to_owned(),
        "--fmad=false".to_owned(),
    ]
}

/// A place on disk for what a source was compiled to.
struct Cached {
    path: PathBuf,
    /// Everything that the image depends on. The file has it in front of the image, so that equal
    /// hashes of different sources do no harm.
    made_of: String,
}

impl Cached {
    /// `None` where nothing is kept.
    fn of(source: &str, architecture: &str, (major, minor): (i32, i32)) -> Option<Self> {
        let options = options(architecture).join(" ");
        let made_of = format!("nvrtc {major}.{minor} {options}\n{source}");
        let mut hasher = DefaultHasher::new();
        made_of.hash(&mut hasher);
        let path = folder()?.join(format!("{architecture}-{:016x}.cubin", hasher.finish()));
        Some(Cached { path, made_of })
    }

    /// The image, where there is one and it is whole.
    fn read(&self) -> Option<Vec<u8>> {
        let file = fs::read(&self.path).ok()?;
        let (lengths, rest) = file.split_at_checked(16)?;
        let (of_text, of_image) = lengths.split_at_checked(8)?;
        let length =
            |bytes: &[u8]| usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok();
        let (text, image) = rest.split_at_checked(length(of_text)?)?;
        (text == self.made_of.as_bytes() && length(of_image)? == image.len())
            .then(|| image.to_vec())
    }

    /// Writes the image. That it cannot be written is no error: it is compiled again next time.
    fn write(&self, image: &[u8]) {
        let mut file = Vec::with_capacity(16 + self.made_of.len() + image.len());
        file.extend((self.made_of.len() as u64).to_le_bytes());
        file.extend((image.len() as u64).to_le_bytes());
        file.extend(self.made_of.as_bytes());
        file.extend(image);
        // Under a name of its own, so that whoever reads meanwhile finds all of it or nothing.
        let unfinished = self.path.with_extension(format!("{}", std::process::id()));
        let written = self
            .path
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&unfinished, file))
            .and_then(|()| fs::rename(&unfinished, &self.path));
        if let Err(error) = written {
            tracing::debug!(path = %self.path.display(), %error, "a compiled kernel is not kept");
        }
    }
}

/// Where compiled kernels are kept.
fn folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    match variable("NNZ_CUDA_CACHE") {
        Some(folder) if folder == Path::new("") => None,
        Some(folder) => Some(folder),
        None => {
            let caches = variable("XDG_CACHE_HOME")
                .or_else(|| variable("HOME").map(|home| home.join(".cache")))?;
            Some(caches.join("nnz").join("cuda"))
        }
    }
}
