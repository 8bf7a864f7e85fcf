//! Blocks and declared operators, and their names in each source.

use crate::ast::{Block, Callee, Expression, ExpressionKind, Operator, Source};
use crate::parse::DEEPEST;
use crate::report::Report;
use sparse_core::diagnostics::Code;
use sparse_core::operators;
use std::collections::BTreeMap;

/// The blocks and operators of a `graph!` and of everything it imports.
pub(crate) struct Library<'a> {
    entries: Vec<Entry<'a>>,
    pub(super) declared: Vec<Declared<'a>>,
    /// For each source, its own first: what names mean. `None` for what came broken.
    rooms: Vec<BTreeMap<String, Option<Meaning>>>,
}

/// What a name stands for, by position.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Meaning {
    Block(usize),
    Operator(usize),
}

/// A block, and where the names in it are looked up.
pub(super) struct Entry<'a> {
    pub(super) block: &'a Block,
    pub(super) room: usize,
    /// True where it has an error: its uses say nothing more.
    broken: bool,
}

/// An operator, and where the names in it are looked up.
pub(super) struct Declared<'a> {
    pub(super) operator: &'a Operator,
    pub(super) room: usize,
    /// Its spec, and that of its gradient; none where it has an error.
    pub(super) specs: Vec<&'static operators::Operator>,
}

/// The room of the `graph!` itself.
const OWN: usize = 0;

impl<'a> Library<'a> {
    /// Everything that can be called in a source. Reports blocks whose names are taken and blocks
    /// that call themselves.
    pub(super) fn new(source: &'a Source, report: &mut Report) -> Self {
        let mut library = Library { entries: Vec::new(), declared: Vec::new(), rooms: Vec::new() };
        library.add(source);
        let blocks = source.blocks.iter().map(|block| ("block", &block.name));
        let operators = source.operators.iter().map(|operator| ("operator", &operator.name));
        for (kind, name) in blocks.chain(operators) {
            let word = name.to_string();
            let first = match library.rooms[OWN].get(&word).copied().flatten() {
                Some(Meaning::Block(at)) => Some(&library.entries[at].block.name),
                Some(Meaning::Operator(at)) => Some(&library.declared[at].operator.name),
                None => None,
            };
            if operators::find(&word).is_some() {
                let message = match kind {
                    "block" => format!("`{word}` is an operator, and cannot be a block"),
                    _ => format!("`{word}` is an operator already"),
                };
                let help = format!("call the {kind} `{word}_{kind}`");
                report.error(Code::DuplicateName, name.span(), message, Some(help));
            } else if first.is_none_or(|first| !std::ptr::eq(first, name)) {
                let message = format!("the {kind} `{word}` is declared twice");
                let help = format!("call the second one `{word}_2`");
                report.error(Code::DuplicateName, name.span(), message, Some(help));
            }
        }
        library.find_recursion(report);
        library
    }

    /// What a name means, or `None` if it came broken.
    pub(super) fn find(&self, room: usize, key: &str) -> Option<Option<Meaning>> {
        self.rooms[room].get(key).copied()
    }

    /// The operators that are declared, by the position that their specs have.
    pub(crate) fn operators(&self) -> Vec<&'a Operator> {
        self.declared.iter().map(|declared| declared.operator).collect()
    }

    /// What can be called in a room.
    pub(super) fn names(&self, room: usize) -> impl Iterator<Item = &str> {
        self.rooms[room].keys().map(String::as_str)
    }

    /// A block that can be expanded.
    pub(super) fn entry(&self, index: usize) -> Option<&Entry<'a>> {
        Some(&self.entries[index]).filter(|entry| !entry.broken)
    }

    /// The blocks of the `graph!` itself, to be checked.
    pub(super) fn own(&self) -> impl Iterator<Item = usize> + use<> {
        let own: Vec<usize> =
            (0..self.entries.len()).filter(|index| self.entries[*index].room == OWN).collect();
        own.into_iter()
    }

    /// Marks a block that has an error.
    pub(super) fn set_broken(&mut self, index: usize) {
        self.entries[index].broken = true;
    }

    fn add(&mut self, source: &'a Source) -> usize {
        let room = self.rooms.len();
        self.rooms.push(BTreeMap::new());
        for package in &source.packages {
            let inner = self.add(&package.source);
            let meaning = self.rooms[inner].get(&package.name).copied().flatten();
            self.rooms[room].insert(package.key.clone(), meaning);
        }
        for operator in &source.operators {
            let index = self.declared.len();
            self.declared.push(Declared { operator, room, specs: Vec::new() });
            let meaning = Some(Meaning::Operator(index));
            self.rooms[room].entry(operator.name.to_string()).or_insert(meaning);
        }
        for block in &source.blocks {
            let index = self.entries.len();
            self.entries.push(Entry { block, room, broken: block.broken });
            self.rooms[room].entry(block.name.to_string()).or_insert(Some(Meaning::Block(index)));
        }
        for name in &source.lost {
            self.rooms[room].entry(name.to_string()).or_insert(None);
        }
        room
    }

    /// A block that calls itself, maybe through others, has no end. Each cycle is reported once.
    fn find_recursion(&mut self, report: &mut Report) {
        let mut done = vec![false; self.entries.len()];
        for start in 0..self.entries.len() {
            self.follow(start, &mut Vec::new(), &mut done, report);
        }
    }

    fn follow(
        &mut self,
        index: usize,
        path: &mut Vec<usize>,
        done: &mut [bool],
        report: &mut Report,
    ) {
        // What is deeper is refused where it is used.
        if done[index] || path.len() > DEEPEST {
            return;
        }
        path.push(index);
        let (block, room) = (self.entries[index].block, self.entries[index].room);
        for callee in callees(block) {
            let Some(Some(Meaning::Block(next))) = self.find(room, &callee.key()) else { continue };
            match path.iter().position(|known| *known == next) {
                None => self.follow(next, path, done, report),
                Some(first) => {
                    let cycle = &path[first..];
                    let names = cycle.iter().chain([&next]);
                    let names: Vec<String> =
                        names.map(|at| format!("`{}`", self.entries[*at].block.name)).collect();
                    let name = &self.entries[next].block.name;
                    let message = format!("the block `{name}` calls itself: {}", names.join(" → "));
                    let help = "a block is written out where it is used; write the repetition out, as `let`s";
                    let span = callee.name.span();
                    report.error(Code::BlockRecursion, span, message, Some(help.to_owned()));
                    for at in cycle {
                        self.entries[*at].broken = true;
                    }
                }
            }
        }
        path.pop();
        done[index] = true;
    }
}

/// What the gradients of an operator call, in order.
pub(crate) fn callees_of_operator(operator: &Operator) -> Vec<&Callee> {
    let mut found = Vec::new();
    for (_, formula) in &operator.gradients {
        visit(formula, &mut found);
    }
    found
}

/// What the lines of a block call, in order.
pub(crate) fn callees(block: &Block) -> Vec<&Callee> {
    let mut found = Vec::new();
    for statement in &block.body {
        visit(&statement.value, &mut found);
    }
    found
}

/// Without recursion: a sum is as deep as it has terms.
fn visit<'a>(expression: &'a Expression, found: &mut Vec<&'a Callee>) {
    let mut next = vec![expression];
    while let Some(expression) = next.pop() {
        if let ExpressionKind::Call { callee, .. } = &expression.kind {
            found.push(callee);
        }
        next.extend(expression.parts().rev());
    }
}
