//! Rows with the reader's numbers as columns of bytes, until the reader takes them over.

/// One column: the numbers' own bytes, as numpy reads them.
#[derive(Default)]
pub struct Column(pub Vec<u8>);

macro_rules! push {
    ($name:ident, $kind:ty) => {
        #[inline(always)]
        pub fn $name(&mut self, value: $kind) {
            self.0.extend_from_slice(&value.to_ne_bytes());
        }
    };
}

impl Column {
    push!(push_i8, i8);
    push!(push_i32, i32);
    push!(push_i64, i64);
}

#[derive(Default)]
pub struct Rows {
    pub count: usize,
    pub category: Column,
    pub name: Column,
    pub place: Column,
    pub start_ns: Column,
    pub duration_ns: Column,
    pub correlation: Column,
    pub shape: Column,
    pub collective: Column,
    pub detail: Column,
    pub external_id: Column,
}

#[derive(Default)]
pub struct Memories {
    pub count: usize,
    pub at_ns: Column,
    pub device: Column,
    pub allocated: Column,
    pub reserved: Column,
}
