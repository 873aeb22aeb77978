//! Pages for page tables of every kind.

/// Pages for page tables.
pub trait Frames {
    /// The physical address of a new page of zeros. `None` if memory ran out.
    fn page(&mut self) -> Option<u64>;
    /// Entry `index` of the table at `table`, which came from [`Frames::page`].
    fn entry(&mut self, table: u64, index: usize) -> &mut u64;
    /// Makes the table at `to` a copy of the one at `from`.
    fn copy(&mut self, to: u64, from: u64);
}

#[cfg(test)]
pub mod fake {
    //! Pages in a map.

    use super::Frames;
    use std::collections::BTreeMap;

    /// Pages by address, and how many there can be.
    #[derive(Clone)]
    pub struct Fake(pub BTreeMap<u64, [u64; 512]>, pub u64);

    impl Fake {
        /// Memory of `pages` pages.
        pub fn new(pages: u64) -> Self {
            Self(BTreeMap::new(), pages)
        }
    }

    impl Frames for Fake {
        fn page(&mut self) -> Option<u64> {
            let page = (self.0.len() as u64 + 1) << 12;
            (page >> 12 <= self.1).then(|| {
                self.0.insert(page, [0; 512]);
                page
            })
        }
        fn entry(&mut self, table: u64, index: usize) -> &mut u64 {
            &mut self.0.get_mut(&table).expect("a table")[index]
        }
        fn copy(&mut self, to: u64, from: u64) {
            let table = self.0[&from];
            self.0.insert(to, table).expect("a table");
        }
    }
}
