//! The tree as a directory, by FUSE: real editors, and programs that save as editors do. Where there is no `/dev/fuse`,
//! what is said then is checked instead.

use crate::support::World;

/// A world whose tree is mounted at `$W/m`; `None` where the system cannot.
fn mounted() -> Option<World> {
    let world = World::with_workspace();
    std::fs::create_dir(world.path("m")).unwrap();
    let (said, status) = world.run("beamtalk agents mount $W/m");
    if status == 0 {
        return Some(world);
    }
    assert!(
        said.starts_with("beamtalk agents: mount: needs ") || said.contains("Operation not permitted"),
        "{said}"
    );
    assert_eq!(status, 1);
    let told = std::io::Write::write_all(
        &mut std::io::stderr(),
        format!("no FUSE here, mounts are not tested: {said}").as_bytes(),
    );
    drop(told);
    None
}

/// How programs save, each as a shell line that puts `faster => N` into the file; run with `N` and the file's path.
const WAYS: &[(&str, &str)] = &[
    (">", "echo \"faster => $N\" > $F"),
    ("cp", "echo \"faster => $N\" > $W/x && cp $W/x $F"),
    ("sed -i", "sed -i \"s/=> .*/=> $N/\" $F"),
    (
        "several writes",
        "echo \"faster => $N\" > $W/x && dd if=$W/x of=$F bs=3 status=none",
    ),
    (
        "write and fsync",
        "echo \"faster => $N\" > $W/x && dd if=$W/x of=$F conv=fsync status=none",
    ),
    (
        "temporary name and rename",
        "echo \"faster => $N\" > $D/.faster.tmp && mv $D/.faster.tmp $F",
    ),
    (
        "a name a method could have, and rename",
        "echo \"faster => $N\" > $D/tmpabcd1234 && mv $D/tmpabcd1234 $F",
    ),
    (
        "backup by renaming",
        "mv $F $D/faster~ && echo \"faster => $N\" > $F && rm $D/faster~",
    ),
    (
        "backup by copying",
        "cp $F $D/faster~ && echo \"faster => $N\" > $F && rm $D/faster~",
    ),
    (
        // Without truncation, then cut to the right length, as VS Code does for files it may not replace.
        "in place, then cut",
        "python3 -c \"
import os
t = b'faster => $N // and more' ; f = os.open('$F', os.O_RDWR)
os.write(f, t); os.ftruncate(f, len(t)); os.fsync(f); os.close(f)\"",
    ),
    (
        "truncated, written, closed twice",
        "python3 -c \"
import os
f = os.open('$F', os.O_WRONLY | os.O_TRUNC); g = os.dup(f)
os.write(f, b'faster => $N\\\\n'); os.close(f); os.close(g)\"",
    ),
    (
        "swap file, then in place",
        "echo x > $D/.faster.swp && : > $D/4913 && rm $D/4913 && echo \"faster => $N\" > $F && rm $D/.faster.swp",
    ),
    ("vim", "vim -u NONE -N -es -c \"%s/=> .*/=> $N/\" -c wq $F"),
    (
        "vim, backup by renaming",
        "vim -u NONE -N -es -c 'set backup backupcopy=no' -c \"%s/=> .*/=> $N/\" -c wq $F",
    ),
    (
        "vim, backup by copying",
        "vim -u NONE -N -es -c 'set backup backupcopy=yes' -c \"%s/=> .*/=> $N/\" -c wq $F",
    ),
    ("nano", "nano-save"),
    (
        "emacs",
        "emacs -Q --batch $F --eval '(progn (erase-buffer) (insert \"faster => '$N'\") (save-buffer))'",
    ),
];

#[test]
fn every_way_of_saving_commits_once() {
    let Some(world) = mounted() else { return };
    world.value("beamtalk 9p rpc agent/eval '(Fan spawn) registerAs: #cooler'");
    let mut count = 0;
    for (number, (name, script)) in (1..).zip(WAYS) {
        let program = script.split(' ').next().unwrap();
        let program = program.trim_end_matches("-save");
        if ["vim", "nano", "emacs"].contains(&program) && world.run(&format!("command -v {program}")).1 != 0 {
            // `make test` names those it has installed.
            let wanted = std::env::var("BEAMTALK_EDITORS").unwrap_or_default();
            assert!(!wanted.contains(program), "{program} is not installed");
            continue;
        }
        let script = if *script == "nano-save" { NANO } else { script };
        let set = format!("N={number}; D=$W/m/classes/Fan; F=$D/faster\n");
        let (said, status) = world.run(&format!("{set}{script}"));
        // Editors in batch mode complain about the missing terminal.
        assert!(status == 0 || program == "vim", "{name}: {said}");
        count += 1;
        assert_eq!(
            world.value("beamtalk 9p rpc agent/actors/cooler/send faster"),
            number.to_string(),
            "{name}: {said}"
        );
        assert_eq!(
            world.value("wc -l < $W/m/changes/log"),
            count.to_string(),
            "{name}"
        );
        assert_eq!(
            world.value("ls -A $W/m/classes/Fan | tr '\\n' ' '"),
            ".class .definition .doc .error .info .source faster speed",
            "{name}"
        );
    }
    assert!(count > 10);
    // Appended lines are part of the method.
    world.check(
        "echo '  // twice' >> $W/m/classes/Fan/faster; wc -l < $W/m/changes/log",
        &format!("{}\n", count + 1),
    );
}

/// nano has no batch mode: it gets a terminal and keys.
const NANO: &str = "python3 -c \"
import os, pty, time, select, sys
pid, fd = pty.fork()
if pid == 0:
    os.environ['TERM'] = 'xterm'
    os.execvp('nano', ['nano', '-I', '-L', '$F'])
def until(wanted):
    seen = b''; end = time.time() + 20
    while time.time() < end:
        if select.select([fd], [], [], 0.2)[0]:
            try: seen += os.read(fd, 65536)
            except OSError: return seen
        if wanted in seen: return seen
    sys.exit('nano: ' + repr(seen))
until(b'faster')
os.write(fd, b'\\\\x0b\\\\x0bfaster => $N'); until(b'$N'); os.write(fd, b'\\\\x0f'); until(b'Write'); os.write(fd, b'\\\\r'); until(b'Wrote'); os.write(fd, b'\\\\x18')
os.waitpid(pid, 0)\"";

#[test]
fn errors_come_where_programs_look_and_nothing_is_lost() {
    let Some(world) = mounted() else { return };
    world.check(
        "printf 'faster => (' > $W/x; cp $W/x $W/m/classes/Fan/faster
         cat $W/m/classes/Fan/.error; cat $W/m/classes/Fan/faster; echo; cat $W/m/changes/pending",
        "cp: failed to close '…/m/classes/Fan/faster': Invalid argument\n1:12: …\nfaster => self.speed := self.speed + 1\n",
    );
    world.check(
        "cd $W/m/classes/Fan && mv faster slower; cat faster",
        "mv: cannot move 'faster' to 'slower': Operation not permitted\nfaster => self.speed := self.speed + 1",
    );
}

/// Programs that do one thing with the method's file, in Python: `f` is a way to open it.
fn python(world: &World, script: &str) -> (String, i32) {
    let before = "import errno, os, sys\nD = os.environ['W'] + '/m/classes/'\ndef f(name='Fan/faster', how=os.O_WRONLY | os.O_TRUNC): return os.open(D + name, how)\ndef said(work):\n  try: work(); print('ok')\n  except OSError as e: print(errno.errorcode[e.errno])\n";
    std::fs::write(world.path("script.py"), format!("{before}{script}")).unwrap();
    world.run("python3 $W/script.py")
}

/// What somebody wrote who was killed while writing does not take effect, even if it could; what somebody wrote who
/// ended without closing does.
#[test]
fn a_writer_that_is_killed_changes_nothing() {
    let Some(world) = mounted() else { return };
    for signal in [9, 15] {
        python(
            &world,
            &format!("os.write(f(), b'faster => 1'); os.kill(os.getpid(), {signal})"),
        );
        world.check(
            "cat $W/m/classes/Fan/faster; echo; wc -l < $W/m/changes/log; cat $W/m/classes/Fan/.error",
            "faster => self.speed := self.speed + 1\n0\n",
        );
    }
    // With other threads, which the end of a program kills too.
    let said = python(
        &world,
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n\
         os.write(f(), b'faster => 12'); os._exit(3)",
    );
    assert_eq!(said.1, 3, "{}", said.0);
    world.check(
        "cat $W/m/classes/Fan/faster; echo; wc -l < $W/m/changes/log",
        "faster => 12\n1\n",
    );
}

/// An error comes from `fsync`, nothing has changed then, and the same open file can still be saved.
#[test]
fn an_error_at_fsync_leaves_the_file_usable() {
    let Some(world) = mounted() else { return };
    let (said, status) = python(
        &world,
        "n = f()\nos.write(n, b'faster => (')\nsaid(lambda: os.fsync(n))\nprint(open(D + 'Fan/.error').read()[:5])\n\
         print(open(D + 'Fan/faster').read())\nos.ftruncate(n, 0); os.pwrite(n, b'faster => 2', 0)\nsaid(lambda: os.fsync(n))\n\
         print(repr(open(D + 'Fan/.error').read()))\nsaid(lambda: os.close(n))",
    );
    assert_eq!(status, 0, "{said}");
    assert_eq!(
        said,
        "EINVAL\n1:12:\nfaster => self.speed := self.speed + 1\nok\n''\nok\n"
    );
    world.check("wc -l < $W/m/changes/log", "1\n");
}

/// A class that goes while its directory and a method are open: errors for what is of it, and everything else goes on.
#[test]
fn a_class_may_go_while_its_directory_is_open() {
    let Some(world) = mounted() else { return };
    let (said, status) = python(
        &world,
        "def new(): open(D + '.new', 'w').write('Object subclass: Gone\\n  one => 1\\n\\n  two => 2\\n')\nnew()\n\
         d = os.open(D + 'Gone', os.O_RDONLY); os.listdir(d); n = f('Gone/two')\n\
         os.system('beamtalk 9p rm agent/classes/Gone')\n\
         said(lambda: os.open(D + 'Gone/one', os.O_RDONLY))\nsaid(lambda: os.stat(D + 'Gone'))\n\
         said(lambda: os.stat(D + 'Gone/one'))\nsaid(lambda: os.stat('one', dir_fd=d))\n\
         os.write(n, b'two => 3'); said(lambda: os.close(n))\nos.close(d)\n\
         print('Gone' in os.listdir(D), 'Fan' in os.listdir(D))\nnew()\nprint(open(D + 'Gone/two').read())",
    );
    assert_eq!(status, 0, "{said}");
    assert_eq!(
        said,
        "ENOENT\nENOENT\nENOENT\nENOENT\nENOENT\nFalse True\ntwo => 2\n"
    );
}

/// A small disk under the home of a world, until the end of the test.
struct SmallDisk<'a>(&'a World);

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        // What uses it ends before it goes.
        self.0
            .run("beamtalk agents stop --kill-sessions; beamtalk workspace stop; umount -l $W/home");
    }
}

/// On a full disk a save fails where the program looks, the reason is in `.error`, neither image nor log have changed,
/// and it works again when there is room.
#[test]
fn a_full_disk_is_told_and_nothing_changes() {
    let world = World::new();
    if world.run("mount -t tmpfs -o size=64m,mode=700 tmpfs $W/home").1 != 0 {
        return;
    }
    let _disk = SmallDisk(&world);
    world.project("");
    world.value("beamtalk workspace start; beamtalk agents start; mkdir $W/m");
    if world.run("beamtalk agents mount $W/m").1 != 0 {
        return;
    }
    world.value("echo 'faster => 7' > $W/x; cat $W/m/classes/Fan/faster");
    let save = "cp $W/x $W/m/classes/Fan/faster; cat $W/m/classes/Fan/.error; cat $W/m/classes/Fan/faster; wc -l < $W/m/changes/log";
    world.run("dd if=/dev/zero of=$W/home/filler bs=4096");
    world.check(
        save,
        "cp: failed to close '…/m/classes/Fan/faster': Input/output error\naudit unavailable\n\
         faster => self.speed := self.speed + 10\n",
    );
    world.value("rm $W/home/filler");
    world.check(
        &format!("{save}; beamtalk 9p rpc agent/eval 'Fan spawn faster'"),
        "faster => 71\n7\n",
    );
}

/// Two who save the same method through the mount, each with the file open before the other saved: both are told that
/// it worked, both are in the log, the text is that of one of them and the one that runs.
#[test]
fn two_who_save_one_method() {
    let Some(world) = mounted() else { return };
    let (said, status) = python(
        &world,
        "for i in range(5):\n  a, b = f(), f()\n  os.write(a, b'faster => 1%d' % i); os.write(b, b'faster => 2%d' % i)\n  \
         os.close(a); os.close(b)\nprint(open(D + 'Fan/faster').read())",
    );
    assert_eq!((said.as_str(), status), ("faster => 24\n", 0));
    world.check(
        "wc -l < $W/m/changes/log; beamtalk 9p rpc agent/eval 'Fan spawn faster'
         for w in 1 2; do (for i in 1 2 3; do echo \"faster => $w$i\" > $W/m/classes/Fan/faster || echo failed; done) & done; wait
         wc -l < $W/m/changes/log; grep -cE '^faster => (13|23)$' $W/m/classes/Fan/faster",
        "10\n24\n16\n1\n",
    );
}

/// What is kept of a class is right at once after whatever changed it: a write by 9P, the image, a removal, an error,
/// the workspace going and coming.
#[test]
fn what_is_kept_of_a_class_is_never_old() {
    let Some(world) = mounted() else { return };
    let all = "grep -rh . $W/m/classes/Fan | sort | head -40";
    for number in 0..20 {
        world.value(all);
        let (how, wanted) = match number % 4 {
            0 => (
                format!("beamtalk 9p write agent/classes/Fan/faster 'faster => {number}'"),
                format!("faster => {number}"),
            ),
            1 => (
                format!(
                    "beamtalk 9p rpc agent/eval 'Fan compile: \"faster => {number}\"' || beamtalk 9p write agent/classes/Fan/faster 'faster => {number}'"
                ),
                format!("faster => {number}"),
            ),
            2 => (
                "beamtalk 9p write agent/classes/Fan/faster 'faster => (' 2>/dev/null; true".to_owned(),
                "1:12: ".to_owned(),
            ),
            _ => (
                format!("beamtalk 9p write -c agent/classes/Fan/new{number} 'new{number} => {number}'"),
                format!("new{number} => {number}"),
            ),
        };
        world.value(&how);
        world.value(&format!("grep -rhF '{wanted}' $W/m/classes/Fan"));
        world.value(&format!("{all} | grep -F '{wanted}'"));
    }
    world.value("beamtalk 9p rm agent/classes/Fan/new3");
    world.check(
        "cat $W/m/classes/Fan/new3; ls $W/m/classes/Fan | grep -c new3",
        "cat: …/m/classes/Fan/new3: No such file or directory\n0\n[1]\n",
    );
    world.value("beamtalk workspace stop");
    world.check(
        "cat $W/m/classes/Fan/faster",
        "cat: …/m/classes/Fan/faster: Cannot send after transport endpoint shutdown\n[1]\n",
    );
}

/// The system keeps what was read from files that nobody changes. Every open sees what was saved last, in whatever
/// length; who has the file open goes on with what it was; and a save that fails changes nothing of it.
#[test]
fn what_the_system_keeps_of_a_file_is_never_old() {
    let Some(world) = mounted() else { return };
    let (said, status) = python(
        &world,
        "import mmap, random, subprocess\n\
         random.seed(7); last = open(D + 'Fan/faster', 'rb').read(); wrong = []\n\
         def text(i): return b'/// x%s\\nfaster => %d' % (b'x' * random.choice([0, 1, 50, 5000, 9000]), i)\n\
         def by_mount(new): n = f(); os.write(n, new); os.close(n)\n\
         def by_rename(new):\n  open(D + 'Fan/.t', 'wb').write(new); os.rename(D + 'Fan/.t', D + 'Fan/faster')\n\
         def by_tree(new): subprocess.run(['beamtalk', '9p', 'write', 'agent/classes/Fan/faster'], input=new, check=True)\n\
         def fails(new):\n  n = f(); os.write(n, b'(' + new)\n  try: os.close(n)\n  except OSError: return\n  wrong.append('saved')\n\
         for i in range(120):\n\
         \x20 held = f(how=os.O_RDONLY); first = os.pread(held, 3, 0)\n\
         \x20 list(os.scandir(D + 'Fan')); old, new = last, text(i)\n\
         \x20 how = random.choice([by_mount, by_mount, by_rename, by_tree, fails]); how(new)\n\
         \x20 if how is not fails: last = new\n\
         \x20 for _ in range(2):\n\
         \x20   seen = open(D + 'Fan/faster', 'rb').read()\n\
         \x20   if seen != last: wrong.append((i, how.__name__, len(seen), len(last)))\n\
         \x20   if os.stat(D + 'Fan/faster').st_size != len(last): wrong.append((i, 'length'))\n\
         \x20 n = f(how=os.O_RDONLY)\n\
         \x20 try:\n\
         \x20   if bytes(mmap.mmap(n, 0, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE)) != last: wrong.append((i, 'mapped'))\n\
         \x20 except OSError: pass\n\
         \x20 os.close(n)\n\
         \x20 if os.pread(held, 1 << 20, 0) not in (old, last): wrong.append((i, 'held'))\n\
         \x20 os.close(held)\n\
         print(wrong)",
    );
    assert_eq!((said.as_str(), status), ("[]\n", 0));
}

#[test]
fn streams_and_requests_work_through_the_mount_and_it_ends_with_the_daemon() {
    let Some(world) = mounted() else { return };
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    world.check(
        "echo 'via mount' > $W/m/agents/demo/in; cat $W/m/agents/demo/wait $W/m/agents/demo/out",
        "idle\necho: via mount\n",
    );
    world.check(
        "exec 3<>$W/m/eval; echo '3 + 4' >&3; read x <&3; echo $x; echo 'x := 5' >&3; read x <&3; echo 'x + 1' >&3; read x <&3; echo $x",
        "7\n6\n",
    );
    world.check(
        "cat $W/m/transcript.follow > $W/told & p=$!
         until ls -l /proc/$p/fd 2>/dev/null | grep -q transcript.follow; do :; done
         echo hello > $W/m/transcript; until grep -qs hello $W/told; do :; done; kill $p; cat $W/m/transcript",
        "hello\n",
    );
    world.check(
        "beamtalk agents umount $W/m; ls -A $W/m; beamtalk agents mount $W/m && ls $W/m | grep -x actors",
        "actors\n",
    );
    // Who reads on keeps it, and is named; who was told to end does not, though it hears of that only later.
    world.check(
        "cat $W/m/transcript.follow > /dev/null & p=$!
         until ls -l /proc/$p/fd 2>/dev/null | grep -q transcript.follow; do :; done
         beamtalk agents umount $W/m; kill $p; beamtalk agents umount $W/m && ls -A $W/m
         beamtalk agents mount $W/m",
        "beamtalk agents: umount: …/m is used by cat (PID …)\n",
    );
    // A reader that hangs on does not keep it.
    world.check(
        "cat $W/m/events > /dev/null 2>&1 & p=$!
         until ls -l /proc/$p/fd 2>/dev/null | grep -q m/events; do :; done
         beamtalk agents stop --kill-sessions > /dev/null
         n=0; while grep -q \" $W/m \" /proc/mounts && test $n -lt 300; do sleep 0.1; n=$((n+1)); done
         grep -c \" $W/m \" /proc/mounts; ls -A $W/m; kill $p 2>/dev/null; true",
        "0\n",
    );
}

/// Whoever may read the tree may mount it: no privileges are needed, and what they save is theirs.
#[test]
fn somebody_without_privileges_can_mount() {
    let nobody = |world: &World, script: &str| {
        let quoted = script.replace('\'', "'\\''");
        let keep = "HOME=$W/home NAMESPACE=$W/ns W=$W PATH=$PATH USER=nobody";
        world.run(&format!(
            "su nobody -s /bin/sh -c \"cd $W/work; export {keep}; \"'{quoted}'"
        ))
    };
    let world = World::new();
    world.project("");
    std::fs::create_dir(world.path("m")).unwrap();
    if !rustix::process::geteuid().is_root() || nobody(&world, "beamtalk --version").1 != 0 {
        // Without root the other tests of the mount are this one; and the binary may be out of reach.
        return;
    }
    world.value("chmod 755 $W; chown -R nobody $W");
    let (said, status) = nobody(
        &world,
        "beamtalk workspace start && beamtalk agents start && beamtalk agents mount $W/m",
    );
    let stop = "beamtalk agents stop --kill-sessions > /dev/null; beamtalk workspace stop > /dev/null";
    if status != 0 && (said.contains("mount: needs ") || said.contains("not permitted")) {
        nobody(&world, stop);
        return;
    }
    assert_eq!(status, 0, "{said}");
    let (said, status) = nobody(
        &world,
        &format!(
            "echo \"faster => 42\" > $W/m/classes/Fan/faster && beamtalk 9p rpc agent/eval \"Fan spawn faster\"
             stat -c %U $W/m/classes/Fan/faster; beamtalk agents umount $W/m; ls -A $W/m
             {stop}"
        ),
    );
    assert_eq!((said.as_str(), status), ("42\nnobody\n", 0));
}
