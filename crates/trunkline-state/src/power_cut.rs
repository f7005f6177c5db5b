//! Simulates power cuts: a disk that loses what was written since the last sync, or a part of it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use redb::{Builder, Database, StorageBackend};
use trunkline::name::ServerName;
use trunkline::policy::{ProjectToggles, Toggle};

use crate::StateFile;

/// A disk: what is durable, and every write since.
#[derive(Clone, Debug, Default)]
struct Disk {
    durable: Vec<u8>,
    writes: Vec<Write>,
    /// States of the disk at which the power may be cut.
    cuts: Vec<(Vec<u8>, Vec<Write>)>,
}

#[derive(Clone, Debug)]
enum Write {
    Bytes(usize, Vec<u8>),
    Length(usize),
}

impl Write {
    fn apply(&self, data: &mut Vec<u8>) {
        match self {
            Self::Length(length) => data.resize(*length, 0),
            Self::Bytes(offset, bytes) => {
                let end = offset + bytes.len();
                data.resize(data.len().max(end), 0);
                data[*offset..end].copy_from_slice(bytes);
            }
        }
    }
}

#[derive(Clone, Debug, Default)]
struct SimulatedDisk(Arc<Mutex<Disk>>);

impl SimulatedDisk {
    fn with(data: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(Disk { durable: data, ..Disk::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap()
    }

    fn current(&self) -> Vec<u8> {
        let disk = self.lock();
        let mut data = disk.durable.clone();
        disk.writes.iter().for_each(|write| write.apply(&mut data));
        data
    }
}

impl StorageBackend for SimulatedDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.current().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let (data, start) = (self.current(), offset as usize);
        out.copy_from_slice(&data[start..start + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.lock().writes.push(Write::Length(len as usize));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let data = self.current();
        let mut disk = self.lock();
        let cut = (disk.durable.clone(), disk.writes.clone());
        disk.cuts.push(cut);
        disk.writes.clear();
        disk.durable = data;
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.lock().writes.push(Write::Bytes(offset as usize, data.to_vec()));
        Ok(())
    }
}

fn database(disk: &SimulatedDisk) -> Result<Database, redb::DatabaseError> {
    Builder::new().set_cache_size(64 * 1024).create_with_backend(disk.clone())
}

fn numbered(number: usize) -> ServerName {
    ServerName::new(&format!("s{number}")).unwrap()
}

/// After a power cut at any moment, every change that was reported as stored is there, in order, and at most
/// the one that was being stored besides.
#[test]
fn no_stored_toggle_is_lost_by_a_power_cut() {
    const CHANGES: usize = 6;
    let state = StateFile::at("unused").project("/p");
    let disk = SimulatedDisk::default();
    let mut stored_at = Vec::new();
    {
        let database = database(&disk).unwrap();
        for number in 0..CHANGES {
            let off = |toggles: &mut ProjectToggles| {
                toggles.entry(None).set(&numbered(number), Toggle::Off);
            };
            state.write(&database, &off).unwrap();
            stored_at.push(disk.lock().cuts.len());
        }
    }
    let cuts = disk.lock().cuts.clone();
    let mut tried = 0;
    for (moment, (durable, writes)) in cuts.iter().enumerate() {
        let stored = stored_at.iter().filter(|at| **at <= moment).count();
        for kept in subsets(writes) {
            let mut data = durable.clone();
            kept.iter().for_each(|write| write.apply(&mut data));
            // Before the first change was stored there may be no database yet.
            let Ok(database) = database(&SimulatedDisk::with(data)) else {
                assert_eq!(stored, 0, "moment {moment}: the file is lost");
                continue;
            };
            let read = state.read(&database).unwrap();
            let found = read.get(None).unwrap().iter().count();
            assert!((stored..=stored + 1).contains(&found), "moment {moment}: {found} of {stored}");
            let is_off = |number| read.merged(None).get(&numbered(number)) == Toggle::Off;
            assert!((0..found).all(is_off), "moment {moment}");
            tried += 1;
        }
    }
    assert!(tried > 50, "{tried}");
}

/// Some of the writes that a disk may have done of those that were not synced yet: none, all, each alone, all
/// but each, and every prefix.
fn subsets(writes: &[Write]) -> Vec<Vec<Write>> {
    let without = |index: usize| {
        writes
            .iter()
            .enumerate()
            .filter(move |(it, _)| *it != index)
            .map(|(_, write)| write.clone())
    };
    let each = writes.iter().map(|write| vec![write.clone()]);
    let prefixes = (0..=writes.len()).map(|length| writes[..length].to_vec());
    each.chain(prefixes).chain((0..writes.len()).map(|index| without(index).collect())).collect()
}
