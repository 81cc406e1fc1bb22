//! Mistakes in a declaration: the message stands at the field and says what to write instead.
//!
//! `TRYBUILD=overwrite cargo test -p halftrack-derive derive_errors` writes the messages anew; read them before you
//! commit them.

#[test]
fn mistakes_are_explained_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/derive_errors/*.rs");
}
