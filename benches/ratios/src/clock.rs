//! Two clocks: of this thread's processor, which a neighbour who wants it too disturbs less, and of
//! the wall.

use std::time::Instant;

/// What time is taken of.
#[derive(Clone, Copy)]
pub enum Clock {
    /// The seconds that this thread has a processor, where the system tells.
    Thread,
    /// The seconds that pass: for work of several threads.
    Wall,
}

impl Clock {
    /// The seconds that something takes.
    pub fn time(self, work: impl FnOnce()) -> f64 {
        let passed = Instant::now();
        let start = self.processor_seconds();
        work();
        match (start, self.processor_seconds()) {
            (Some(start), Some(end)) => end - start,
            _ => passed.elapsed().as_secs_f64(),
        }
    }

    fn processor_seconds(self) -> Option<f64> {
        match self {
            Clock::Thread => processor_seconds(),
            Clock::Wall => None,
        }
    }
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn processor_seconds() -> Option<f64> {
    // SAFETY: the signature is that of POSIX, with `timespec` as two numbers of 64 bits.
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut [i64; 2]) -> i32;
    }
    const THREAD_CPUTIME: i32 = 3;
    let mut time = [0; 2];
    // SAFETY: where a pointer has 64 bits, Linux's `timespec` is two of 64 bits; it is written and
    // not kept.
    let status = unsafe { clock_gettime(THREAD_CPUTIME, &mut time) };
    (status == 0).then(|| time[0] as f64 + time[1] as f64 / 1e9)
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn processor_seconds() -> Option<f64> {
    None
}
