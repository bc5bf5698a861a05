//! What is digested of the canonical numbers: the README says which functions that are.

use crate::stream::Stream;
use surety_exact as exact;
use surety_exact::{BLOCK, GROUP, LANES, Precision, Quantum, Sampling, Turns};

/// The longest row.
const WIDTH: usize = 3 * GROUP;
const HEAD: usize = 16;
/// More than one block.
const POSITIONS: usize = BLOCK + 40;
const ROUNDS: usize = 24;

type Case = fn(&mut Stream);

/// The digest of what the canonical numbers give for arguments that depend on the seed alone.
pub fn digest(seed: u64) -> u64 {
    let cases: [Case; 9] = [
        functions, angles, sums, norms, quantized, products, attention, pooling, sampling,
    ];
    let mut stream = Stream::new(seed);
    for _ in 0..ROUNDS {
        for case in cases {
            case(&mut stream);
        }
    }
    stream.digest()
}

/// A row of its own length; every other one without anything awkward.
fn row<'a>(stream: &mut Stream, buffer: &'a mut [f32; WIDTH]) -> &'a [f32] {
    let n = stream.upto(WIDTH as u64);
    let plain = stream.number() & 1 == 0;
    let row = &mut buffer[..n];
    for value in row.iter_mut() {
        *value = if plain { stream.plain() } else { stream.float() };
    }
    row
}

fn put_outcome(stream: &mut Stream, outcome: Result<(), exact::ArithmeticError>, row: &[f32]) {
    match outcome {
        Ok(()) => stream.put_floats(row),
        Err(fault) => stream.put_fault(fault),
    }
}

fn functions(stream: &mut Stream) {
    let functions: [fn(f32) -> f32; 8] = [
        exact::exp,
        exact::sqrt,
        exact::rsqrt,
        exact::tanh,
        exact::erf,
        exact::gelu,
        exact::gelu_tanh,
        exact::silu,
    ];
    for function in functions {
        for _ in 0..200 {
            let x = stream.float();
            stream.put_float(function(x));
        }
        let x = f32::from_bits(stream.number() as u32);
        stream.put_float(function(x));
    }
}

fn angles(stream: &mut Stream) {
    let mut head = [0.0; HEAD];
    head.fill_with(|| stream.float());
    let mut turns = [Turns(0); HEAD / 2];
    turns.fill_with(|| Turns(stream.number()));
    let position = stream.number() as u32;
    let (sin, cos) = exact::sin_cos_turn(position);
    stream.put_floats(&[sin, cos]);
    let (sin, cos) = turns[0].at(position);
    let (a, b) = exact::rotate_pair(head[0], head[1], (sin, cos));
    stream.put_floats(&[sin, cos, a, b]);
    let outcome = exact::rotate_row(&mut head, &turns, position);
    put_outcome(stream, outcome, &head);
}

fn sums(stream: &mut Stream) {
    let mut buffer = [0.0; WIDTH];
    let row = row(stream, &mut buffer);
    stream.put_float(exact::sum(row));
    stream.put_float(exact::sum_of_squares(row));
    let mut lanes = [0.0; LANES];
    lanes.fill_with(|| stream.float());
    stream.put_float(exact::fold(lanes));
}

fn norms(stream: &mut Stream) {
    let (mut buffer, mut weight, mut bias) = ([0.0; WIDTH], [0.0; WIDTH], [0.0; WIDTH]);
    weight.fill_with(|| stream.plain());
    bias.fill_with(|| stream.plain());
    let row = row(stream, &mut buffer);
    let n = row.len();
    let mut out = [0.0; WIDTH];
    let outcome = exact::layer_norm_row(row, &weight[..n], &bias[..n], 1e-12, &mut out[..n]);
    put_outcome(stream, outcome, &out[..n]);
    let outcome = exact::rms_norm_row(row, &weight[..n], 1e-5, &mut out[..n]);
    put_outcome(stream, outcome, &out[..n]);
}

fn quantized(stream: &mut Stream) {
    let (mut buffer, mut by, mut scaled) = ([0.0; WIDTH], [0.0; WIDTH], [0.0; WIDTH]);
    by.fill_with(|| stream.plain());
    let row = row(stream, &mut buffer);
    let n = row.len();
    let outcome = exact::scale_row(row, &by[..n], &mut scaled[..n]);
    put_outcome(stream, outcome, &scaled[..n]);
    let (mut q, mut scales) = ([0i16; WIDTH], [0.0; WIDTH / GROUP]);
    let scales = &mut scales[..exact::groups(n)];
    for precision in [Precision::Int8, Precision::Int12] {
        let outcome = exact::quantize_row(&scaled[..n], precision, &mut q[..n], scales);
        put_outcome(stream, outcome, scales);
        if outcome.is_ok() {
            q[..n].iter().for_each(|q| stream.put(*q as u64));
        }
        let first = n.min(GROUP);
        match exact::quantize_group(&row[..first], precision, &mut q[..first]) {
            Ok(scale) => stream.put_float(scale),
            Err(fault) => stream.put_fault(fault),
        }
    }
    let tie = stream.integer();
    stream.put(exact::round(f32::from(tie) * 0.5) as u64);
    let x = stream.plain();
    stream.put(exact::round(x) as u64);
}

fn products(stream: &mut Stream) {
    let (mut q, mut w) = ([0i8; WIDTH], [0i8; WIDTH]);
    q.fill_with(|| stream.integer());
    w.fill_with(|| stream.integer());
    product(stream, &q, &w);
    let (mut q, mut w) = ([0i16; WIDTH], [0i16; WIDTH]);
    q.fill_with(|| stream.wide_integer());
    w.fill_with(|| stream.wide_integer());
    product(stream, &q, &w);
}

fn product<Q: Quantum>(stream: &mut Stream, q: &[Q], w: &[Q]) {
    let (mut s, mut t) = ([0.0; WIDTH / GROUP], [0.0; WIDTH / GROUP]);
    s.fill_with(|| stream.float());
    t.fill_with(|| stream.float());
    let n = stream.upto(WIDTH as u64);
    let groups = exact::groups(n);
    stream.put(exact::dot(&q[..n], &w[..n]) as u64);
    match exact::product_cell(&q[..n], &s[..groups], &w[..n], &t[..groups], stream.float()) {
        Ok(cell) => stream.put_float(cell),
        Err(fault) => stream.put_fault(fault),
    }
}

fn attention(stream: &mut Stream) {
    let (mut query, mut out) = ([0.0; HEAD], [0.0; HEAD]);
    let (mut keys, mut values) = ([[0.0; HEAD]; POSITIONS], [[0.0; HEAD]; POSITIONS]);
    query.fill_with(|| stream.plain());
    keys.as_flattened_mut().fill_with(|| stream.plain());
    values.as_flattened_mut().fill_with(|| stream.plain());
    let n = stream.upto(POSITIONS as u64);
    if stream.number() & 3 == 0 {
        keys[n / 2][3] = stream.float() * 30.0;
        values[n / 3][5] = stream.float();
    }
    let query = heads(stream, &[query]);
    let (keys, values) = (heads(stream, &keys), heads(stream, &values));
    let outcome = exact::attention_row(
        head(&query, 0),
        |j| head(&keys, j),
        |j| head(&values, j),
        n,
        exact::rsqrt(HEAD as f32),
        &mut out,
    );
    put_outcome(stream, outcome, &out);
    let mut buffer = [0.0; WIDTH];
    let n = row(stream, &mut buffer).len().min(BLOCK);
    let mut weights = [0; BLOCK];
    match exact::softmax_block(&mut buffer[..n], &values.1[..n], &mut weights[..n]) {
        Ok((block, scale)) => {
            stream.put_floats(&[block.largest, block.total, scale]);
            stream.put_floats(&buffer[..n]);
            weights[..n].iter().for_each(|q| stream.put(*q as u64));
        }
        Err(fault) => stream.put_fault(fault),
    }
}

/// One head of each row, and their scales.
fn heads<const N: usize>(stream: &mut Stream, rows: &[[f32; HEAD]; N]) -> ([[i16; HEAD]; N], [f32; N]) {
    let (mut q, mut scales) = ([[0; HEAD]; N], [0.0; N]);
    let outcome = exact::quantize_heads(rows.as_flattened(), HEAD, q.as_flattened_mut(), &mut scales);
    put_outcome(stream, outcome, &scales);
    (q, scales)
}

fn head<'a, const N: usize>((q, scales): &'a ([[i16; HEAD]; N], [f32; N]), row: usize) -> exact::Head<'a> {
    exact::Head {
        q: &q[row],
        scale: scales[row],
    }
}

fn pooling(stream: &mut Stream) {
    let (mut buffer, mut out) = ([0.0; WIDTH], [0.0; WIDTH]);
    let n = row(stream, &mut buffer).len();
    let rows = 1 + n % 5;
    let width = n / rows;
    let outcome = exact::mean_pool(&buffer[..rows * width], &mut out[..width]);
    put_outcome(stream, outcome, &out[..width]);
    let outcome = exact::l2_normalize(&mut buffer[..n]);
    put_outcome(stream, outcome, &buffer[..n]);
}

fn sampling(stream: &mut Stream) {
    let (mut buffer, mut order) = ([0.0; WIDTH], [0; WIDTH]);
    let logits = row(stream, &mut buffer);
    match exact::greedy(logits) {
        Ok(token) => stream.put(u64::from(token)),
        Err(fault) => stream.put_fault(fault),
    }
    for _ in 0..8 {
        let how = Sampling {
            temperature_milli: stream.number() as u32 % 2000,
            top_k: stream.number() as u32 % 400,
            top_p_milli: stream.number() as u32 % 1300,
        };
        let random = stream.number();
        match exact::sample(logits, &how, random, &mut order[..logits.len()]) {
            Ok(token) => stream.put(u64::from(token)),
            Err(fault) => stream.put_fault(fault),
        }
    }
}
