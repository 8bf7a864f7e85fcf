#![doc = include_str!("../docs/coming_from/index.md")]

#[doc = include_str!("../docs/coming_from/mxnet.md")]
pub mod mxnet {}

#[doc = include_str!("../docs/coming_from/vowpal_wabbit.md")]
pub mod vowpal_wabbit {}

#[doc = include_str!("../docs/coming_from/liblinear.md")]
pub mod liblinear {}

#[doc = include_str!("../docs/coming_from/xlearn.md")]
pub mod xlearn {}

#[doc = include_str!("../docs/coming_from/scikit_learn.md")]
pub mod scikit_learn {}

#[doc = include_str!("../docs/coming_from/pytorch.md")]
pub mod pytorch {}
