//! The kernels of products on tensor cores, by the tiles of their blocks of threads.

use surety_exact::Precision;

/// A kernel on tensor cores.
pub(crate) struct Tiles {
    pub(crate) kernel: &'static str,
    /// Outputs and rows of a block. The source has the same.
    pub(crate) outputs: usize,
    pub(crate) rows: usize,
}

/// Those of a precision.
pub(crate) struct Choice {
    /// For few rows.
    pub(crate) eight: Tiles,
    pub(crate) sixteen: Tiles,
    /// For many rows, the largest first: the larger a tile is, the less is read for a result.
    pub(crate) many: &'static [Tiles],
    /// Where none of these has enough blocks.
    pub(crate) smallest: Tiles,
    /// Most warps of a block for few rows. Of int12 a group takes twice the registers.
    pub(crate) warps_max: usize,
}

const INT8: Choice = Choice {
    eight: Tiles {
        kernel: "product_16x8",
        outputs: 16,
        rows: 8,
    },
    sixteen: Tiles {
        kernel: "product_16x16",
        outputs: 16,
        rows: 16,
    },
    many: &[
        Tiles {
            kernel: "product_128x128",
            outputs: 128,
            rows: 128,
        },
        Tiles {
            kernel: "product_128x64",
            outputs: 128,
            rows: 64,
        },
        Tiles {
            kernel: "product_64x64",
            outputs: 64,
            rows: 64,
        },
    ],
    smallest: Tiles {
        kernel: "product_32x32",
        outputs: 32,
        rows: 32,
    },
    warps_max: 16,
};

const INT12: Choice = Choice {
    eight: Tiles {
        kernel: "product12_16x8",
        outputs: 16,
        rows: 8,
    },
    sixteen: Tiles {
        kernel: "product12_16x16",
        outputs: 16,
        rows: 16,
    },
    many: &[
        Tiles {
            kernel: "product12_128x64",
            outputs: 128,
            rows: 64,
        },
        Tiles {
            kernel: "product12_64x64",
            outputs: 64,
            rows: 64,
        },
    ],
    smallest: Tiles {
        kernel: "product12_32x32",
        outputs: 32,
        rows: 32,
    },
    warps_max: 8,
};

impl Choice {
    pub(crate) fn of(precision: Precision) -> &'static Self {
        match precision {
            Precision::Int8 => &INT8,
            Precision::Int12 => &INT12,
        }
    }
}

impl Tiles {
    /// Blocks of threads of a product, by how many tiles its rows are.
    pub(crate) fn blocks(&self, row_tiles: usize, outputs: impl Iterator<Item = usize>) -> usize {
        let blocks = outputs.map(|outputs| outputs.div_ceil(self.outputs) * row_tiles);
        blocks.sum()
    }

    /// Tiles of rows whose better half is there.
    pub(crate) fn full(&self, rows: usize) -> usize {
        (rows + self.rows / 2 - 1) / self.rows
    }
}
