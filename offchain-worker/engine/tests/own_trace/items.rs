//! Whoever has computed some items alone plays with what it was shown of the others.

use std::{
    collections::BTreeSet,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use surety_dispute_game::bisection::{Side, State, Trace};
use surety_engine::{Claimed, Event, content_hash};
use surety_types::{ContentHash, model::Pooling, task::ResultClaim};

use super::{
    common::{
        embed_job,
        trace::{Altered, cell_of, play, quiet},
    },
    go_on, run, synthetic_bert, view, weight_root,
};

/// Whoever has computed some items alone, and is shown the rest, plays with that.
#[test]
fn a_wrong_item_is_challenged_by_whoever_has_computed_that_item_alone() {
    let (engine, job) = (synthetic_bert(24, Pooling::Mean), embed_job("a b\nc\nd e f\ng"));
    let outcome = run(&engine, &job);
    let right = (&outcome.leaves, &outcome.output);
    let strides = (outcome.leaves.len() - 2) / 4;
    let (mut leaves, mut output) = (outcome.leaves.clone(), outcome.output.clone());
    // The third of four items: its last leaf, and the last number of its row.
    leaves[3 * strides] = ContentHash::repeat_byte(1);
    let row = engine.manifest().exact.as_ref().unwrap().architecture.width as usize * 4;
    let at = output.len() - row - 4;
    output[at] ^= 1;
    *leaves.last_mut().unwrap() = content_hash(&output);

    let shown = (&leaves[..], &output[..]);
    let by = |items: &[u32]| engine.view_by_items(&job, items, shown, &mut go_on).unwrap();
    let own = by(&[0, 2]).unwrap();
    assert_eq!((&own.leaves, &own.output), right);
    // What was appended to the output makes no other view of it.
    let longer = [&output[..], b"more"].concat();
    let longer = engine.view_by_items(&job, &[0, 2], (&leaves, &longer), &mut go_on);
    assert_eq!(longer.unwrap().as_ref(), Some(&own));
    // Who has others sees none of it.
    let other = by(&[1, 3]).unwrap();
    assert_eq!((&other.leaves[..], &other.output[..]), shown);
    let cut = (&leaves[1..], &output[..]);
    assert_eq!(engine.view_by_items(&job, &[2], cut, &mut go_on).unwrap(), None);

    let passes = Arc::new(AtomicUsize::new(0));
    let counted = passes.clone();
    let sink = move |event: Event| {
        let starts = matches!(event, Event::Progress { done: 0, total } if total > 1);
        counted.fetch_add(usize::from(starts), Ordering::SeqCst);
        ControlFlow::Continue(())
    };
    let claimed = Claimed {
        known: Some(own),
        ..Claimed::whole(output, 4)
    };
    let mut own = engine.clone().trace(job, claimed, Box::new(sink)).unwrap();
    // But for that of the output, which is claimed wrong.
    let last = outcome.leaves.len() - 1;
    assert_eq!(own.leaves().unwrap(), &outcome.leaves[..last]);
    let item = 1 + 2 * strides as u32;
    let steps = own.steps(item).unwrap();
    assert_eq!(steps.last(), Some(&outcome.leaves[item as usize]));
    assert!(!own.rows(last as u32, 0).unwrap().is_empty());
    assert_eq!(passes.load(Ordering::SeqCst), 0);
}

/// What is left of it where no more than these parts are known.
fn known<T: Copy + Default>(all: &[T], parts: &BTreeSet<u32>, of_part: usize) -> Vec<T> {
    let is_known = |at: usize| parts.contains(&((at / of_part) as u32));
    let all = all.iter().enumerate();
    all.map(|(at, one)| if is_known(at) { *one } else { T::default() })
        .collect()
}

/// So do those who were shown no more of it than the parts with their own items, and find the same cells.
#[test]
fn a_wrong_item_is_found_by_whoever_knows_nothing_of_the_others() {
    const ITEMS: usize = 400;
    const ITEM: usize = 333;
    let lines: Vec<_> = (0..ITEMS).map(|line| ["a b", "c", "d e f"][line % 3]).collect();
    let (engine, job) = (synthetic_bert(24, Pooling::Mean), embed_job(lines.join("\n")));
    let outcome = run(&engine, &job);
    let (strides, last) = ((outcome.leaves.len() - 2) / ITEMS, outcome.leaves.len() - 1);
    let row = engine.manifest().exact.as_ref().unwrap().architecture.width as usize * 4;
    let number = outcome.output.len() - (ITEMS - ITEM) * row + 8;
    let flipped = |at: usize| {
        let mut blob = outcome.output.clone();
        blob[at] ^= 1;
        blob
    };
    let items = [3, ITEM as u32];
    let parts = engine.item_parts(&job, &items).unwrap();
    assert!(parts.leaves_bytes as usize == outcome.leaves.len() * 32 && parts.leaves_bytes > 8_192);
    assert!(parts.output_bytes as usize == outcome.output.len() && parts.output_bytes > 5 * 8_192);

    // Its last leaf, the third number of its row, or the header, which is shown with any item.
    for (leaf, at, output) in [
        ((ITEM + 1) * strides, 4, outcome.output.clone()),
        (last, number, flipped(number)),
        (last, 16, flipped(16)),
    ] {
        let honest = view(&engine, &job, &output, ITEMS as u32);
        let mut liar = Altered::new(honest, leaf as u32, 0, |row| match leaf == last {
            true => *row = output.clone(),
            false => row[at] ^= 1,
        });
        let said = liar.leaves().unwrap().to_vec();
        let leaves = known(&said, &parts.leaves, 256);
        let shown = (&leaves[..], &known(&output, &parts.output, 8_192)[..]);
        let claim = ResultClaim {
            output: content_hash(&output),
            trace_root: liar.root(),
            units: ITEMS as u32,
        };
        let found = engine.audit_items(&job, &items, &mut go_on).unwrap();
        let has =
            |claim: &ResultClaim, shown| engine.shows_items_in_parts(&job, (&items, &found), claim, shown);
        assert!(!has(&claim, shown));
        let own = engine
            .view_by_items(&job, &items, shown, &mut go_on)
            .unwrap()
            .unwrap();
        let claimed = Claimed {
            known: Some(own.by_parts(shown, &parts.output)),
            ..Claimed::whole(output.clone(), ITEMS as u32)
        };
        let mut own = engine.clone().trace(job.clone(), claimed, quiet()).unwrap();
        let (state, _) = play(liar.root(), (&mut liar, &mut own), weight_root(&engine));
        // Everybody knows what the header has to be: its cell is judged without an opening.
        if let State::Over(outcome) = &state {
            assert_eq!((at, outcome.winner), (16, Side::Challenger));
            continue;
        }
        let cell = cell_of(&state);
        assert_eq!((cell.leaf as usize, cell.cell as usize), (leaf, at / 4));
    }
    // Of what is right the same parts say so.
    let found = engine.audit_items(&job, &items, &mut go_on).unwrap();
    let leaves = known(&outcome.leaves, &parts.leaves, 256);
    let shown = (&leaves[..], &known(&outcome.output, &parts.output, 8_192)[..]);
    assert!(engine.shows_items_in_parts(&job, (&items, &found), &outcome.claim, shown));
    let longer = ResultClaim {
        output: ContentHash::repeat_byte(1),
        ..outcome.claim.clone()
    };
    assert!(!engine.shows_items_in_parts(&job, (&items, &found), &longer, shown));
}
