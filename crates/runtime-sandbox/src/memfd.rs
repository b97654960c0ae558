//! Files that have no name, to hand bytes to a process that is about to be started.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

/// What no kernel header of older systems has: the file may be executed, whatever the default is.
const EXECUTABLE: MemfdFlags = MemfdFlags::EXEC;

/// A file that holds `bytes`, to be read from its start.
pub(crate) fn holding(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL;
    let file = memfd_create(name, flags).or_else(|error| match error {
        // Kernels before 6.3 do not know the flag.
        rustix::io::Errno::INVAL => memfd_create(name, MemfdFlags::CLOEXEC),
        error => Err(error),
    })?;
    fill(file, bytes)
}

/// A program that nobody can change any more.
pub(crate) fn program(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let sealable = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create(name, sealable | EXECUTABLE).or_else(|error| match error {
        rustix::io::Errno::INVAL => memfd_create(name, sealable),
        error => Err(error),
    })?;
    let file = fill(file, bytes)?;
    let all = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(&file, all)?;
    Ok(file)
}

fn fill(file: OwnedFd, bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(file);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}
