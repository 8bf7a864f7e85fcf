//! Compile-time refusal of models that need more than GPUs have.

use sparse_core::inspect::{Part, PlanTable};

/// Refuses a plan with a value that no kernel of a GPU computes.
///
/// # Panics
///
/// Then, with the name of the kernel, which is operator and storage types: an error of the compiler
/// where the plan is a constant.
pub(super) const fn demand_kernels(plan: &PlanTable<'_>) {
    let mut at = 0;
    while at < plan.values.len() {
        let value = &plan.values[at];
        if let Some(how) = &value.computed
            && !matches!(value.part, Part::Unused)
            && how.on_gpu.is_none()
        {
            let mut message = Message { bytes: [0; 512], len: 0 };
            message.push("model `");
            message.push(plan.name);
            message.push("` cannot be moved to a GPU, which has no kernel `");
            message.push(how.kernel);
            message.push("` of `");
            message.push(how.operator);
            message.push("`: train it on the host, or move it by `OnGpu::try_new`, which says so when it runs");
            panic!("{}", message.text());
        }
        at += 1;
    }
}

/// A text put together while a program compiles; what is too long for it is left out.
struct Message {
    bytes: [u8; 512],
    len: usize,
}

impl Message {
    const fn push(&mut self, text: &str) {
        if self.len + text.len() > self.bytes.len() {
            return;
        }
        let mut at = 0;
        while at < text.len() {
            self.bytes[self.len + at] = text.as_bytes()[at];
            at += 1;
        }
        self.len += text.len();
    }

    const fn text(&self) -> &str {
        match str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            // Whole texts were put together.
            Err(_) => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparse_core::inspect::{Computed, Operand, PlanValue, Stored};
    use sparse_core::storage::{ElementType, Storage};

    const fn value(
        kernel: &'static str,
        on_gpu: Option<&'static str>,
        operator: &'static str,
        part: Part,
    ) -> PlanValue<'static> {
        PlanValue {
            name: "",
            number: 0,
            part,
            storage: Storage::Dense,
            element: ElementType::F32,
            shape: &[],
            stored: Stored::All,
            gradient: None,
            computed: Some(Computed {
                operator,
                kernel,
                on_gpu,
                operands: &[Operand::Number(1.0)],
                attributes: &[],
                fused: false,
                fallback: false,
            }),
            written: None,
        }
    }

    const THERE: &[PlanValue<'_>] = &[
        value("dot_csr_row_sparse", Some("dot_csr_row_sparse"), "dot", Part::Forward),
        value("swish_dense", None, "swish", Part::Unused),
        value("tanh_csr", Some("unary"), "tanh", Part::Forward),
    ];

    const MISSING: &[PlanValue<'_>] = &[value("swish_dense", None, "swish", Part::Forward)];

    #[test]
    fn a_plan_of_kernels_that_are_there_is_a_constant() {
        const { demand_kernels(&PlanTable { values: THERE, ..PlanTable::empty("There") }) }
    }

    #[test]
    #[should_panic(
        expected = "model `Own` cannot be moved to a GPU, which has no kernel `swish_dense` of `swish`: train"
    )]
    fn a_missing_kernel_is_named() {
        demand_kernels(&PlanTable { values: MISSING, ..PlanTable::empty("Own") });
    }
}
