//! A model as it is compiled by default, and the same unfused: what one computes, the other must.

/// Each model twice, the second time with `fuse = off`.
macro_rules! twins {
    ($($(#[$doc:meta])* $fused:ident, $unfused:ident { $($body:tt)* })*) => {
        graph! { $(
            $(#[$doc])*
            pub model $fused { $($body)* }
            $(#[$doc])*
            pub model $unfused { fuse = off; $($body)* }
        )* }
    };
}
