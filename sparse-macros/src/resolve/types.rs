//! Types: words to storage and element types, extents to dimensions.

use super::Resolver;
use crate::ast::{ArrayType, Extent};
use sparse_core::alternatives::MOST_VARIANTS;
use sparse_core::diagnostics::{Code, nearest};
use sparse_core::ir::Annotation;
use sparse_core::shapes::{Dim, Dims};
use sparse_core::storage::{ElementType, Storage};
use syn::Ident;

impl Resolver<'_> {
    pub(super) fn annotation(&mut self, array: &ArrayType) -> Annotation {
        let (storage, element, shape) = self.array_type(array);
        Annotation { storage, shape, element, place: self.place(array.span) }
    }

    pub(super) fn array_type(&mut self, array: &ArrayType) -> (Storage, Option<ElementType>, Dims) {
        let storage = self.storage(&array.storage);
        let element = array.element.as_ref().and_then(|element| {
            let parsed = element.to_string().parse().ok();
            if parsed.is_none() {
                let message = format!("no element type is called `{element}`");
                let known = ElementType::ALL.map(ElementType::name);
                let word = element.to_string();
                // Not `f32`, which is near.
                let is_integer = ["i8", "i16", "i32", "u8", "u16", "isize", "usize"];
                let help = match nearest(&word, known) {
                    Some(known) if !is_integer.contains(&word.as_str()) => {
                        format!("write `{known}`")
                    }
                    _ => {
                        "write `f32`, `f64`, `f16` or `bf16`; for ids `u32`, `u64` or `i64`; `unit` for a csr of ones".into()
                    }
                };
                self.error(Code::UnknownElement, element.span(), message, Some(help));
            }
            parsed.filter(|parsed| self.is_compiled(*parsed, Code::UnknownElement, element))
        });
        let shape = array
            .dims
            .iter()
            .map(|extent| match extent {
                Extent::Name(name) => {
                    self.check_extent(name);
                    self.dim(&name.to_string())
                }
                Extent::Size(size) => Dim::Size(*size),
                Extent::Inferred => self.graph.unify.fresh(),
            })
            .collect();
        (storage, element, shape)
    }

    fn storage(&mut self, name: &Ident) -> Storage {
        let word = name.to_string();
        word.parse().unwrap_or_else(|()| {
            let names = Storage::ALL.map(Storage::name);
            let help = match nearest(&word, names) {
                Some(known) => format!("write `{known}`"),
                None => format!("the storage types are `{}`", names.join("`, `")),
            };
            let message = format!("no storage type is called `{word}`");
            self.error(Code::UnknownStorage, name.span(), message, Some(help));
            Storage::Dense
        })
    }

    /// The storage types that an input may have. What makes too many combinations is reported, and
    /// has its first.
    pub(super) fn alternatives(
        &mut self,
        name: &Ident,
        first: Storage,
        array: &ArrayType,
    ) -> Vec<Storage> {
        let mut storages = vec![first];
        storages.extend(array.alternatives.iter().map(|other| self.storage(other)));
        let earlier = self.graph.alternatives.iter().map(|known| known.storages.len());
        let variants: usize = earlier.product::<usize>() * storages.len();
        if variants > MOST_VARIANTS {
            let message = format!(
                "with the alternatives of `{name}` the model has {variants} variants, which are more than {MOST_VARIANTS}"
            );
            let help = "each variant is a model of its own to compile: leave out alternatives that no data has";
            self.error(Code::TooManyVariants, name.span(), message, Some(help.to_owned()));
            storages.truncate(1);
        }
        storages
    }

    /// Whether there are kernels for an element type: those of the halves are a feature.
    pub(super) fn is_compiled(&mut self, element: ElementType, code: Code, word: &Ident) -> bool {
        let is_compiled = !element.is_half() || cfg!(feature = "half");
        if !is_compiled {
            let message = format!("`{element}` needs the feature `half`");
            let help = "write `nnz = { …, features = [\"half\"] }` in Cargo.toml".to_owned();
            self.error(code, word.span(), message, Some(help));
        }
        is_compiled
    }

    /// A constant that is no extent.
    fn check_extent(&mut self, name: &Ident) {
        let word = name.to_string();
        if self.frame.block.is_none() && self.numbers.is_no_extent(&word) {
            let message = format!("the constant `{word}` is a number, and no extent");
            let help = format!("declare it as one: `const {word}: usize`");
            self.error(Code::BadExtent, name.span(), message, Some(help));
        }
    }

    /// A name is one extent in the whole model; in a block, in one use of it.
    fn dim(&mut self, name: &str) -> Dim {
        if self.frame.block.is_none() {
            return Dim::Named(name.to_owned());
        }
        let fresh = || self.graph.unify.fresh();
        self.frame.dims.entry(name.to_owned()).or_insert_with(fresh).clone()
    }
}
