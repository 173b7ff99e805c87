//! The heap of the system's C library, told to give memory back.

/// Arenas of the heap. One a thread, as glibc would make, keeps what each of a crawl's many threads once needed: 380 to
/// 417 MiB instead of 99 in a soak of 200 misbehaving hosts.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS: libc::c_int = 2;
/// Blocks from this size on, bytes, are mapped by themselves and go back to the system when they are freed. Left alone,
/// glibc raises this with every large block.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED_FROM: libc::c_int = 1 << 20;

/// Before any thread is started.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn keep_lean() {
    for (parameter, value) in [(libc::M_ARENA_MAX, ARENAS), (libc::M_MMAP_THRESHOLD, MAPPED_FROM)] {
        // SAFETY: mallopt takes two numbers and may be called at any time. If it refuses, the heap is as it was.
        #[expect(unsafe_code, reason = "a call into the C library without a safe form")]
        unsafe {
            libc::mallopt(parameter, value);
        }
    }
}

/// Lets each of so many threads have an arena of its own, for work that is short and does little but allocate.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn be_quick(threads: usize) {
    let arenas = libc::c_int::try_from(threads).unwrap_or(libc::c_int::MAX);
    // SAFETY: as in `keep_lean`.
    #[expect(unsafe_code, reason = "a call into the C library without a safe form")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, arenas);
    }
}

/// Other systems' heaps are left as they are.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn be_quick(_threads: usize) {}

/// Gives what is free back to the system.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn give_back() {
    // SAFETY: malloc_trim takes a number and may be called at any time.
    #[expect(unsafe_code, reason = "a call into the C library without a safe form")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Other systems' heaps are left as they are.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn give_back() {}

/// Other systems' heaps are left as they are.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn keep_lean() {}
