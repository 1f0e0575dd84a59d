//! Encoding and decoding: every message survives, no bytes hurt.

use beamtalk_ninep::{
    Dialect, DirectoryEntry, Names, NumericUser, Payload, Qid, Reply, Request, Stat, frame_size,
    parse_request,
};
use proptest::prelude::*;

fn text() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 ./é…-]{0,40}"
}

fn qid() -> impl Strategy<Value = Qid> {
    (any::<u8>(), any::<u32>(), any::<u64>()).prop_map(|(kind, version, path)| Qid { kind, version, path })
}

fn stat() -> impl Strategy<Value = Stat> {
    (qid(), any::<u32>(), any::<u32>(), any::<u64>(), text(), text()).prop_map(
        |(qid, mode, mtime, length, name, uid)| Stat {
            qid,
            mode,
            mtime,
            atime: mtime,
            length,
            name,
            gid: uid.clone(),
            muid: uid.clone(),
            uid,
            ..Stat::default()
        },
    )
}

fn data() -> impl Strategy<Value = Payload> {
    proptest::collection::vec(any::<u8>(), 0..200).prop_map(Payload::from)
}

fn both_requests() -> impl Strategy<Value = Request> {
    prop_oneof![
        (any::<u32>(), text()).prop_map(|(msize, version)| Request::Version { msize, version }),
        (
            any::<u32>(),
            any::<u32>(),
            proptest::collection::vec(text(), 0..17)
        )
            .prop_map(|(fid, newfid, names)| Request::Walk {
                fid,
                newfid,
                wname: Names(names)
            }),
        (any::<u32>(), any::<u64>(), any::<u32>()).prop_map(|(fid, offset, count)| Request::Read {
            fid,
            offset,
            count
        }),
        (any::<u32>(), any::<u64>(), data()).prop_map(|(fid, offset, data)| Request::Write {
            fid,
            offset,
            data
        }),
        any::<u32>().prop_map(|fid| Request::Clunk { fid }),
        any::<u32>().prop_map(|fid| Request::Remove { fid }),
        any::<u16>().prop_map(|oldtag| Request::Flush { oldtag }),
    ]
}

fn linux_requests() -> impl Strategy<Value = Request> {
    prop_oneof![
        (any::<u32>(), text(), any::<u32>()).prop_map(|(fid, uname, uid)| Request::Attach {
            fid,
            afid: 1,
            aname: uname.clone(),
            uname,
            n_uname: NumericUser(uid)
        }),
        (any::<u32>(), any::<u32>()).prop_map(|(fid, flags)| Request::Lopen { fid, flags }),
        (any::<u32>(), any::<u64>()).prop_map(|(fid, mask)| Request::Getattr { fid, mask }),
        (any::<u32>(), any::<u64>(), any::<u32>()).prop_map(|(fid, offset, count)| Request::Readdir {
            fid,
            offset,
            count
        }),
        (any::<u32>(), proptest::option::of(any::<u32>()))
            .prop_map(|(fid, datasync)| Request::Fsync { fid, datasync }),
        (any::<u32>(), text()).prop_map(|(fid, name)| Request::Unlinkat { fid, name, flags: 0 }),
    ]
}

fn replies() -> impl Strategy<Value = Reply> {
    prop_oneof![
        text().prop_map(|ename| Reply::Error { ename }),
        qid().prop_map(|qid| Reply::Attach { qid }),
        proptest::collection::vec(qid(), 0..17).prop_map(|wqid| Reply::Walk { wqid }),
        data().prop_map(|data| Reply::Read { data }),
        stat().prop_map(|stat| Reply::Stat { stat }),
    ]
}

fn body(bytes: &[u8]) -> (u8, &[u8]) {
    assert_eq!(frame_size(bytes), Some(bytes.len() as u32));
    (bytes[4], &bytes[7..])
}

proptest! {
    #[test]
    fn requests_survive(request in both_requests(), tag in any::<u16>()) {
        for dialect in [Dialect::Plan9, Dialect::Linux] {
            let mut bytes = Vec::new();
            request.encode(tag, dialect, &mut bytes);
            let (number, fields) = body(&bytes);
            prop_assert_eq!(Request::decode(number, fields, dialect), Ok(request.clone()));
        }
    }

    #[test]
    fn linux_requests_survive(request in linux_requests()) {
        let mut bytes = Vec::new();
        request.encode(1, Dialect::Linux, &mut bytes);
        let (number, fields) = body(&bytes);
        prop_assert_eq!(Request::decode(number, fields, Dialect::Linux), Ok(request));
    }

    #[test]
    fn replies_survive(reply in replies()) {
        let mut bytes = Vec::new();
        reply.encode(7, Dialect::Plan9, &mut bytes);
        let (number, fields) = body(&bytes);
        prop_assert_eq!(Reply::decode(number, fields, Dialect::Plan9), Ok(reply));
    }

    #[test]
    fn any_bytes_are_refused_or_read_but_never_hurt(number in any::<u8>(), bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        for dialect in [Dialect::Plan9, Dialect::Linux] {
            if let Ok(request) = Request::decode(number, &bytes, dialect) {
                let mut again = Vec::new();
                request.encode(1, dialect, &mut again);
                prop_assert_eq!(Request::decode(number, &again[7..], dialect), Ok(request));
            }
            drop(Reply::decode(number, &bytes, dialect));
        }
        drop(Stat::entries(&bytes));
        drop(DirectoryEntry::entries(&bytes));
    }

    #[test]
    fn a_message_cut_short_is_refused(request in both_requests(), cut in any::<prop::sample::Index>()) {
        let mut bytes = Vec::new();
        request.encode(1, Dialect::Plan9, &mut bytes);
        let (number, fields) = body(&bytes);
        let end = cut.index(fields.len());
        prop_assert!(Request::decode(number, &fields[..end], Dialect::Plan9).is_err());
    }

    #[test]
    fn directory_entries_survive(stats in proptest::collection::vec(stat(), 0..10)) {
        let bytes: Vec<u8> = stats.iter().flat_map(Stat::entry).collect();
        prop_assert_eq!(Stat::entries(&bytes), Ok(stats));
    }

    #[test]
    fn shown_walks_are_read_back(fid in any::<u32>(), names in proptest::collection::vec("[a-z]{1,8}", 0..5)) {
        let request = Request::Walk { fid, newfid: 5, wname: Names(names) };
        prop_assert_eq!(parse_request(&request.show(9)), Some((9, request)));
    }
}

#[test]
fn a_string_that_is_not_text_is_refused() {
    for bytes in [
        &b"\x00\x20\x00\x00\x02\x00\xff\xfe"[..],
        b"\x00\x20\x00\x00\x02\x00a\x00",
    ] {
        assert!(Request::decode(100, bytes, Dialect::Plan9).is_err());
    }
}

#[test]
fn messages_of_the_other_dialect_do_not_exist() {
    assert!(Request::decode(112, &[0; 5], Dialect::Linux).is_err());
    assert!(Request::decode(12, &[0; 8], Dialect::Plan9).is_err());
    assert!(Request::decode(106, &[], Dialect::Plan9).is_err());
}
