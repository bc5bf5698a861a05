//! What has no canonical result.

use surety_cuda::{Error, GpuBackend, Heads, Kernels, Mask, Norm, Pages, Quanta, Rows, Weights};
use surety_exact::{ArithmeticError, Precision};

use super::attention::quantized;

pub fn each_fault_is_reported_once<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let not_finite = Err(Error::Arithmetic(ArithmeticError::NotFinite));
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let rows = kernels.upload(&[1.0, bad, 2.0]).unwrap();
        kernels
            .quantize(&rows, 3, None, &mut Rows::new(Precision::Int8))
            .unwrap();
        assert_eq!(kernels.check(), not_finite, "{bad}");
        assert_eq!(kernels.check(), Ok(()), "a fault is reported once");
    }

    // 127 * 127 times scales that are each finite.
    let large = kernels.upload(&[f32::MAX; 2]).unwrap();
    let weights = Weights {
        inputs: 2,
        outputs: 1,
        q: Quanta::Int8(&[127, 127]),
        scales: &[1e30],
        bias: None,
    };
    let packed = kernels.pack(&weights).unwrap();
    let mut rows = Rows::new(Precision::Int8);
    kernels.quantize(&large, 2, None, &mut rows).unwrap();
    let mut out = kernels.floats(1).unwrap();
    kernels.product(&rows, &packed, &mut out).unwrap();
    assert_eq!(
        kernels.download(&out).map(drop),
        not_finite,
        "a product that overflows"
    );

    let one = kernels.upload(&[1.0; 2]).unwrap();
    let mut out = kernels.floats(2).unwrap();
    let mut infinite = kernels.upload(&[f32::MAX, f32::INFINITY]).unwrap();
    let norm = Norm {
        weight: &one,
        bias: None,
        epsilon: 1e-5,
    };
    kernels.norm(&infinite, &norm, &mut out).unwrap();
    assert_eq!(kernels.check(), not_finite, "a norm of an infinity");

    let smoothing = kernels.upload(&[f32::MAX; 2]).unwrap();
    let mut into = Rows::new(Precision::Int8);
    kernels
        .norm_quantize((&mut infinite, None, None), &norm, None, None, &mut into)
        .unwrap();
    assert_eq!(kernels.check(), not_finite, "a norm of an infinity, quantized");
    let mut apart = kernels.upload(&[10.0, 0.0]).unwrap();
    kernels
        .norm_quantize((&mut apart, None, None), &norm, None, Some(&smoothing), &mut into)
        .unwrap();
    assert_eq!(kernels.check(), not_finite, "a smoothing that overflows");

    let mut halves = [(); 2].map(|()| kernels.upload(&[f32::MAX, 0.0]).unwrap());
    let [half, other] = &mut halves;
    kernels
        .norm_quantize((half, Some(other), None), &norm, None, None, &mut into)
        .unwrap();
    assert_eq!(kernels.check(), not_finite, "a sum that overflows");
    let mut ten = kernels.upload(&[10.0, 0.0]).unwrap();
    kernels
        .gelu_quantize((&mut ten, false), false, (2, Some(&smoothing)), &mut into)
        .unwrap();
    assert_eq!(
        kernels.check(),
        not_finite,
        "a smoothing that overflows behind a gelu"
    );

    // Each result would be 0.
    kernels.norm(&large, &norm, &mut out).unwrap();
    assert_eq!(
        kernels.check(),
        not_finite,
        "squares that overflow, without a mean"
    );
    let apart = kernels.upload(&[1e30, -1e30]).unwrap();
    let norm = Norm {
        bias: Some(&one),
        ..norm
    };
    kernels.norm(&apart, &norm, &mut out).unwrap();
    assert_eq!(kernels.check(), not_finite, "squares that overflow, about a mean");

    quantized(kernels, &[f32::MAX, f32::INFINITY], 1, 2);
    assert_eq!(kernels.check(), not_finite, "a head of an infinity");
    let mut cache = Pages::new(1, 1, 2).unwrap().cache();
    let (large_head, one_head) = (
        quantized(kernels, &[f32::MAX; 2], 1, 2),
        quantized(kernels, &[1.0; 2], 1, 2),
    );
    kernels.append(&mut cache, 0, &large_head, &one_head).unwrap();
    kernels
        .attention(&large_head, &mut cache, 0, Mask::Full, &mut out)
        .unwrap();
    assert_eq!(kernels.check(), not_finite, "a score that overflows");

    let mut zeros = kernels.upload(&[0.0; 2]).unwrap();
    kernels.l2_normalize(&mut zeros, 2).unwrap();
    assert_eq!(kernels.check(), Err(Error::Arithmetic(ArithmeticError::ZeroNorm)));
    let mut large = kernels.upload(&[f32::MAX; 2]).unwrap();
    kernels.l2_normalize(&mut large, 2).unwrap();
    assert_eq!(kernels.check(), not_finite, "squares that overflow");

    shapes(kernels);
}

/// Nothing of a wrong shape reaches the machine.
fn shapes<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let shape = Err(Error::Arithmetic(ArithmeticError::Shape));
    let weights = Weights {
        inputs: 2,
        outputs: 3,
        q: Quanta::Int8(&[1; 6]),
        scales: &[1.0; 3],
        bias: None,
    };
    assert_eq!(
        kernels
            .pack(&Weights {
                outputs: 2,
                ..weights
            })
            .map(drop),
        shape
    );
    assert_eq!(
        kernels
            .pack(&Weights {
                scales: &[1.0],
                ..weights
            })
            .map(drop),
        shape
    );
    assert_eq!(
        kernels
            .pack(&Weights {
                bias: Some(&[0.0]),
                ..weights
            })
            .map(drop),
        shape
    );
    let packed = kernels.pack(&weights).unwrap();

    let four = kernels.upload(&[1.0; 4]).unwrap();
    let mut rows = Rows::new(Precision::Int8);
    let mut out = kernels.floats(6).unwrap();
    assert_eq!(
        kernels.quantize(&four, 3, None, &mut rows),
        shape,
        "no whole rows"
    );
    assert_eq!(
        kernels.product(&rows, &packed, &mut out),
        shape,
        "nothing quantized"
    );
    kernels.quantize(&four, 2, None, &mut rows).unwrap();
    let mut small = kernels.floats(5).unwrap();
    assert_eq!(
        kernels.product(&rows, &packed, &mut small),
        shape,
        "a small output"
    );
    assert_eq!(kernels.products(&rows, &mut []), shape, "a product by nothing");

    let numbers = kernels.numbers(&[0, 3]).unwrap();
    let mut out = kernels.floats(4).unwrap();
    assert_eq!(
        kernels.embed(&packed, &numbers, &mut out),
        shape,
        "a token that the table has not"
    );
    assert_eq!(
        kernels.gather(&four, 2, &numbers, &mut out),
        shape,
        "a row that is not there"
    );
    assert_eq!(
        kernels.spans(std::slice::from_ref(&(3..3))).map(drop),
        shape,
        "an empty span"
    );

    let mut cache = Pages::new(1, 1, 2).unwrap().cache();
    let four = quantized(kernels, &[1.0; 4], 1, 2);
    kernels.append(&mut cache, 0, &four, &four).unwrap();
    assert_eq!(
        kernels.append(&mut cache, 1, &four, &four),
        shape,
        "a layer that is not there"
    );
    assert_eq!(
        kernels.append(&mut cache, 0, &Heads::default(), &four),
        shape,
        "nothing quantized"
    );
    assert_eq!(
        kernels.attention(&four, &mut cache, 0, Mask::Causal { first: 1 }, &mut out),
        shape,
        "the future"
    );
    for (layers, kv_heads, head_dim) in [(0, 1, 2), (1, 0, 2), (1, 1, 0), (1, 1, 513), (1, usize::MAX, 2)] {
        let refused = Pages::<M>::new(layers, kv_heads, head_dim).map(drop);
        assert_eq!(
            refused,
            Err(ArithmeticError::Shape),
            "{layers}, {kv_heads}, {head_dim}"
        );
    }
    assert_eq!(kernels.check(), Ok(()));
}
