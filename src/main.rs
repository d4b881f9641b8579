//! The binary: arguments in, exit code out; everything else lies in the library.

fn main() {}
