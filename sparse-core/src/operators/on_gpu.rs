//! Kernels of GPUs for storage rules, by the operator's kind and the rule's mark.

use super::{Kind, Operator, Rule, Signature, find};

/// The family of kernels that a GPU has for a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuFamily {
    /// The kernel of the rule, by the name that it has on every device.
    OfRule,
    /// The one of all functions of an element, with the operator's formula.
    Unary,
    /// Those of all functions of two elements, with the operator's formula.
    Binary,
    /// Those of all reductions, with the operator's formulas.
    Reduce,
    /// Those of all losses that are a sum over scores, with the operator's formula.
    MeanLoss,
    /// The one of their gradients.
    LossGradient,
    /// Those of a cross entropy.
    MeanCrossEntropy,
    /// The one of its gradient.
    CrossEntropyGradient,
}

impl GpuFamily {
    /// The name of what several rules share; `None` of the kernel of one rule, which has the
    /// rule's.
    pub const fn shared_name(self) -> Option<&'static str> {
        Some(match self {
            GpuFamily::OfRule => return None,
            GpuFamily::Unary => "unary",
            GpuFamily::Binary => "binary",
            GpuFamily::Reduce => "reduce",
            GpuFamily::MeanLoss => "mean_loss",
            GpuFamily::LossGradient => "loss_gradient",
            GpuFamily::MeanCrossEntropy => "mean_cross_entropy",
            GpuFamily::CrossEntropyGradient => "cross_entropy_gradient",
        })
    }

    /// What is launched for the kernel of this name, `dot_csr_dense`.
    pub fn name(self, kernel: &str) -> &str {
        self.shared_name().unwrap_or(kernel)
    }
}

impl Operator {
    /// What is launched on a GPU for the kernel of this name, `dot_csr_dense`; `None` where GPUs
    /// have nothing: the rule is not marked, or the operator is declared in a model's source.
    pub fn gpu_family(&self, kernel: &str) -> Option<GpuFamily> {
        let rule = kernel.strip_prefix(self.name)?.strip_prefix('_')?;
        let is = |of: Signature| of.on_gpu && of.results().any(|result| of.kernel(result) == rule);
        self.storage.iter().flat_map(Rule::signatures).any(is).then_some(())?;
        Some(match self.kind {
            Kind::Kernel => GpuFamily::OfRule,
            Kind::Unary(_) => GpuFamily::Unary,
            Kind::Binary(..) => GpuFamily::Binary,
            Kind::Reduction(_) => GpuFamily::Reduce,
            Kind::Loss { element: Some(_), .. } => GpuFamily::MeanLoss,
            Kind::Loss { element: None, .. } => GpuFamily::MeanCrossEntropy,
            Kind::LossGradient(loss) => match find(loss)?.kind {
                Kind::Loss { element: None, .. } => GpuFamily::CrossEntropyGradient,
                _ => GpuFamily::LossGradient,
            },
            Kind::Declared(..) => return None,
        })
    }
}

#[test]
fn gpu_kernels_follow_from_kind_and_mark() {
    use super::{all, find};
    let launched = |operator: &str, kernel: &str| {
        find(operator).unwrap().gpu_family(kernel).map(|of| of.name(kernel).to_owned())
    };
    for (operator, kernel, name) in [
        ("dot", "dot_csr_dense", "dot_csr_dense"),
        ("tanh", "tanh_csr", "unary"),
        ("add", "add_dense_dense", "binary"),
        ("sum", "sum_csr", "reduce"),
        ("logistic", "logistic_dense_dense", "mean_loss"),
        ("huber_gradient", "huber_gradient_dense_dense", "loss_gradient"),
    ] {
        assert_eq!(launched(operator, kernel).as_deref(), Some(name));
    }
    for kernel in ["dot_csr_csr", "dot", "tanh_csr", ""] {
        assert_eq!(launched("dot", kernel), None);
    }
    // A rule without the mark has none, whatever its kind.
    let marked = |operator: &&Operator| operator.storage.iter().any(|rule| rule.signature().on_gpu);
    const UNMARKED: &[Rule] = &[super::write::rule("dense -> dense")];
    let unmarked = Operator { storage: UNMARKED, ..*find("tanh").unwrap() };
    assert_eq!(unmarked.gpu_family("tanh_dense"), None);
    assert!(all().filter(marked).count() > 100);
}
