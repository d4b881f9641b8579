//! The one integration binary: the real program and the rooms together.

mod bed;
mod lifecycle;
mod machine;
mod reconcile;
