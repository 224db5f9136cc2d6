//! Durations and amounts of memory as people write them.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

fn sum_of_parts(mut text: &str) -> Option<f64> {
    let mut seconds = 0.0;
    while !text.is_empty() {
        let unit_at = text.find(|c: char| c.is_ascii_alphabetic())?;
        let (number, rest) = text.split_at(unit_at);
        let next = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let factor = match &rest[..next] {
            "ms" => 1e-3,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * factor;
        text = &rest[next..];
    }
    Some(seconds)
}

/// A duration as people read it: `0.12 s`, `42 s`, `3m05s`, `2h14m`.
pub fn show(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.2} s", duration.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A time, written `60s`, `500ms`, `5m`, `2h`, `1h30m` or as a plain number of seconds. The journal has it in
/// seconds.
///
/// ```
/// use racecars_study::units::Time;
///
/// let time: Time = "1m30s".parse()?;
/// assert_eq!((time.duration().as_secs(), time.to_string().as_str()), (90, "90s"));
/// assert_eq!(
///     "soon".parse::<Time>().unwrap_err(),
///     "`soon` is not a positive time such as 60s, 500ms, 5m, 2h or 1h30m"
/// );
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
pub struct Time(f64);

impl Time {
    /// As a duration.
    pub fn duration(self) -> Duration {
        Duration::from_secs_f64(self.0)
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is not a positive time such as 60s, 500ms, 5m, 2h or 1h30m");
        let seconds = match text.trim().parse::<f64>() {
            Ok(seconds) => seconds,
            Err(_) => sum_of_parts(text.trim()).ok_or_else(wrong)?,
        };
        // A century is more than anyone waits, and far from what overflows.
        if seconds > 0.0 && seconds < 3.2e9 { Ok(Time(seconds)) } else { Err(wrong()) }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.0)
    }
}

/// An amount of memory, written `512M`, `2G`, `1.5GB`, `800k` or as a plain number of bytes; the units are
/// powers of 1024. The journal has it in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Memory(u64);

impl Memory {
    /// In bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for Memory {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not an amount of memory such as 512M or 2G");
        let trimmed = text.trim();
        let unit_at = trimmed.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(unit_at);
        let shift = match unit.to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
            "" => 0,
            "k" => 10,
            "m" => 20,
            "g" => 30,
            "t" => 40,
            _ => return Err(wrong()),
        };
        let amount = number.parse::<f64>().map_err(|_| wrong())? * (1u64 << shift) as f64;
        if (1.0..1e18).contains(&amount) { Ok(Memory(amount as u64)) } else { Err(wrong()) }
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes % (1 << 30) == 0 => write!(f, "{}G", bytes >> 30),
            bytes if bytes % (1 << 20) == 0 => write!(f, "{}M", bytes >> 20),
            bytes => write!(f, "{bytes}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_amounts_are_read_and_nonsense_is_refused() {
        let milliseconds = |text: &str| text.parse().map(|time: Time| time.duration().as_millis());
        assert_eq!(milliseconds("500ms"), Ok(500));
        assert_eq!(milliseconds("60s"), Ok(60_000));
        assert_eq!(milliseconds("2m30s"), Ok(150_000));
        assert_eq!(milliseconds("1d"), Ok(86_400_000));
        for wrong in ["", "s", "0", "-3s", "nan", "inf", "5x", "5s5", "1e300s"] {
            assert!(wrong.parse::<Time>().is_err(), "{wrong}");
        }
        let bytes = |text: &str| text.parse().map(Memory::bytes);
        assert_eq!(bytes("1k"), Ok(1024));
        assert_eq!(bytes("1.5MiB"), Ok(3 << 19));
        assert_eq!(bytes("4096"), Ok(4096));
        for wrong in ["", "G", "-1G", "0", "nan", "1Q", "1e30"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        for text in ["60s", "0.25s", "3199999999.5s"] {
            assert_eq!(text.parse::<Time>().unwrap().to_string(), text);
        }
        for text in ["2G", "1536M", "1025"] {
            assert_eq!(text.parse::<Memory>().unwrap().to_string(), text);
        }
        let shown = [120, 42_000, 185_000, 8_040_000].map(|ms| show(Duration::from_millis(ms)));
        assert_eq!(shown, ["0.12 s", "42 s", "3m05s", "2h14m"]);
    }
}
