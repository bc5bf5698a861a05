//! What is unfolded for one game is there for the next.

use super::small::works;
use crate::{layout::Part, player::memory};
use surety_dispute_game::bisection::{Shape, Trace};

#[test]
fn leaves_are_kept_as_long_as_there_is_room_and_are_the_same() {
    for work in works() {
        let computed = |leaf: &u32| matches!(work.layout.part(*leaf), Some(Part::Rows { .. }));
        let leaves: Vec<u32> = (0..work.layout.leaves()).filter(computed).collect();
        let fresh = |leaf| work.player().steps(leaf).unwrap();
        let mut first = work.player();
        let one = memory(core::slice::from_ref(first.unfold(leaves[0]).unwrap()));
        assert!(one > 0);
        for (room, kept) in [(0, 0), (usize::MAX, leaves.len() - 1)] {
            let mut player = work.player().keeping(room);
            for _ in 0..2 {
                for leaf in &leaves {
                    assert_eq!(player.steps(*leaf).unwrap(), fresh(*leaf));
                }
            }
            assert_eq!(player.kept.len(), kept);
        }
        let mut player = work.player().keeping(one);
        for leaf in &leaves {
            player.steps(*leaf).unwrap();
            assert!(memory(&player.kept) <= one);
        }
    }
}
