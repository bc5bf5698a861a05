//! Traces that are wrong in one place.

use super::small::write;
use crate::{CellReferee, Player, Rows, testsuite::MemoryTrace};
use surety_dispute_game::bisection::{
    Cell, CellValue, Clocks, Game, Outcome, Shape, Side, State, Trace, challenge, defend,
};
use surety_proofs::{content_hash, merkle_root};

fn digest_again(player: &mut Player<MemoryTrace>, step: usize) {
    let unfolded = player.unfolded.as_mut().unwrap();
    unfolded.digests.rows[step] = unfolded.steps[step].digests();
    unfolded.digests.steps[step] = merkle_root(unfolded.digests.rows[step].iter().copied());
}

/// The trace of a player that says something else of one cell of a computed leaf, and of the leaf's last row
/// too: so that the leaf differs, whatever would have become of the fault.
pub fn liar(honest: &mut Player<MemoryTrace>, at: &Cell) -> Player<MemoryTrace> {
    honest.unfold(at.leaf).unwrap();
    let mut liar = honest.clone();
    let unfolded = liar.unfolded.as_mut().unwrap();
    let last = unfolded.steps.len() - 1;
    write(&mut unfolded.steps[at.step as usize], at.row, at.cell, at.value);
    digest_again(&mut liar, at.step as usize);
    if at.step as usize != last {
        let record = &mut liar.unfolded.as_mut().unwrap().steps[last];
        let cells = match record {
            Rows::Quantized { width, words, .. } => 2 * *width + *words,
            _ => record.row_bytes() / 4,
        };
        let row = record.count() - 1;
        write(record, row, cells - 1, CellValue::Word([1, 2, 3, 4]));
        digest_again(&mut liar, last);
    }
    let unfolded = liar.unfolded.as_ref().unwrap();
    liar.records.rows[at.leaf as usize] = unfolded.steps[last].clone();
    liar.records.leaves[at.leaf as usize] = unfolded.digests.steps[last];
    match liar.records.claimed.clone() {
        // Whatever came before, it stands by what was delivered.
        Some(claimed) => liar_about(&liar, liar.layout.leaves() - 1, claimed),
        None => liar,
    }
}

/// The trace of a player whose input or output is another one.
pub fn liar_about(honest: &Player<MemoryTrace>, leaf: u32, rows: Rows) -> Player<MemoryTrace> {
    let mut liar = honest.clone();
    let digest = content_hash(&rows.row(0).unwrap());
    if leaf > 0 {
        liar.layout.facts.output = digest;
    }
    liar.records.leaves[leaf as usize] = digest;
    liar.records.rows[leaf as usize] = rows;
    liar
}

/// Plays a game to its end, or until it needs a committee; the cell that it came to, if it did.
pub fn play(
    referee: &CellReferee<'_>,
    defender: &mut impl Trace,
    challenger: &mut impl Trace,
) -> (Option<Outcome>, Option<Cell>, u32) {
    let layout = referee.layout();
    let root = merkle_root(leaves(defender).into_iter());
    let mut game = Game::new(root, layout, Clocks::equal(100)).unwrap();
    let (mut found, mut bytes) = (None, 0);
    while let Some(side) = game.to_move() {
        let played = match side {
            Side::Defender => defend(&game, layout, defender).ok().unwrap(),
            Side::Challenger => challenge(&game, challenger).ok().unwrap(),
        };
        bytes += codec::Encode::encoded_size(&played) as u32;
        game.step(side, played, layout, referee).unwrap();
        if let State::Opening { cell } | State::Evidence { cell, .. } | State::NeedsCommittee { cell } =
            game.state()
        {
            found = Some(*cell);
        }
    }
    (game.outcome(), found, bytes)
}

fn leaves(trace: &mut impl Trace) -> Vec<sp_core::H256> {
    trace.leaves().ok().unwrap().to_vec()
}
