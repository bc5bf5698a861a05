//! How far each pair of a head turns from a position to the next.

use core::f64::consts::TAU;

use surety_exact::Turns;

use crate::config::{LlamaConfig, RotaryScaling};

/// One whole turn.
const WHOLE: f64 = 18_446_744_073_709_551_616.0;

/// Pair `i` turns `theta^(-2 i / d)` radians a position, after scaling. Only basic operations and `libm`'s
/// own power function: the same table on every machine.
pub(super) fn turns(config: &LlamaConfig) -> Vec<Turns> {
    let dim = config.head_dim as f64;
    (0..config.head_dim / 2)
        .map(|pair| {
            let angle = libm::pow(config.theta, -2.0 * pair as f64 / dim);
            let angle = config.scaling.map_or(angle, |scaling| scaled(angle, &scaling));
            Turns(libm::round(angle / TAU * WHOLE) as u64)
        })
        .collect()
}

fn scaled(angle: f64, scaling: &RotaryScaling) -> f64 {
    let slow = angle / scaling.factor;
    // How often the pair turns over the original context.
    let times = scaling.original * angle / TAU;
    if times < scaling.low {
        return slow;
    }
    if times > scaling.high {
        return angle;
    }
    let share = (times - scaling.low) / (scaling.high - scaling.low);
    (1.0 - share) * slow + share * angle
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn config(scaling: &str) -> LlamaConfig {
        let json = format!(
            r#"{{"vocab_size":8,"hidden_size":64,"num_hidden_layers":1,"num_attention_heads":1,
            "intermediate_size":8,"max_position_embeddings":8,"rms_norm_eps":1e-5,"rope_theta":10000.0,
            "rope_scaling":{scaling}}}"#
        );
        LlamaConfig::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn the_first_pair_turns_one_radian_and_each_next_one_less() {
        let turns = turns(&config("null"));
        assert_eq!(turns.len(), 32);
        // 2^64 / (2 pi), as an f64 has it.
        assert_eq!(turns[0].0, 2_935_890_503_282_001_408);
        let ratio = turns[0].0 as f64 / turns[8].0 as f64;
        assert!((ratio - 10.0).abs() < 1e-12, "{ratio}");
        assert!(turns.is_sorted_by(|a, b| a.0 > b.0));
    }

    #[test]
    fn scaling_slows_slow_pairs_down_alone() {
        let plain = turns(&config("null"));
        let scaling = r#"{"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,
            "original_max_position_embeddings":8192}"#;
        let scaled = turns(&config(scaling));
        assert_eq!(plain[0], scaled[0]);
        // Rounded once, from more digits than the plain turn has.
        assert!(scaled[31].0.abs_diff(plain[31].0 / 8) <= 1);
        let kept = plain.iter().zip(&scaled).filter(|(a, b)| a == b).count();
        assert!((1..31).contains(&kept), "{kept}");
    }
}
