//! Which cells of a claim no block can compute again.

use alloc::vec::Vec;

use sp_core::H256;

use crate::{CellReferee, Layout, LeafPlan, Op};
use surety_dispute_game::bisection::{Cell, CellValue, Referee, Shape, opening_room};

impl Layout {
    /// The kinds of steps in which a cell's opening is longer than a game about this claim has room for: a
    /// committee decides those.
    ///
    /// Layers are alike and openings are longest at the end of a row, of a chunk and of a sequence, so that
    /// there is no more to be looked at in a model of many layers. Ids of an input are taken to be anywhere.
    pub fn beyond(&self) -> Vec<Op> {
        let plans = self.longest().chain(self.fullest()).flatten();
        let mut beyond: Vec<Op> = plans.flat_map(|plan| self.beyond_of(plan)).collect();
        beyond.sort();
        beyond.dedup();
        beyond
    }

    /// Whether there is any.
    pub fn needs_committee(&self) -> bool {
        let mut plans = self.longest().chain(self.fullest()).flatten();
        plans.any(|plan| self.beyond_of(plan).next().is_some())
    }

    fn beyond_of<'l>(&'l self, plan: LeafPlan<'l>) -> impl Iterator<Item = Op> + 'l {
        plan.kinds().filter_map(move |number| {
            let op = plan.step(number)?.op;
            self.is_beyond(&plan, number).then_some(op)
        })
    }

    fn is_beyond(&self, plan: &LeafPlan<'_>, step: u32) -> bool {
        let (leaf, length) = (plan.leaf(), plan.length());
        let Some(shape) = self.rows(leaf, length, step) else {
            return false;
        };
        let room = opening_room(self, leaf, length, step);
        let last = |count: u32| count.saturating_sub(1);
        let ends = [0, last(shape.cells())];
        let cells = [0, last(shape.rows)]
            .into_iter()
            .flat_map(|row| ends.map(|cell| (row, cell)));
        let mut lengths = cells.map(|(row, cell)| {
            let at = Cell {
                leaf,
                length,
                step,
                row,
                cell,
                // Openings are as long whatever is claimed.
                value: CellValue::Byte(0),
            };
            CellReferee::new(self, H256::zero()).opening_bytes(&at)
        });
        lengths.any(|bytes| bytes.is_none() || bytes > room)
    }
}
