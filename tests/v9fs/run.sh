#!/usr/bin/env bash
# The agents' tree under a 9P client none of us wrote: the Linux kernel's. Where the running kernel cannot mount 9p,
# a small emulated machine can: Debian's kernel and busybox in QEMU, whose only network address is our socket.
# `make test-v9fs` installs what this needs (about 400 MB); it is not part of `make test` for that reason.
set -euo pipefail
beamtalk=$(realpath "${1:-target/release/beamtalk}")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
export BEAMTALK_HOME=$work/home NAMESPACE=$work/namespace

finish() {
  "$beamtalk" agents stop --kill-sessions --quiet > "$work/stop.log" 2>&1 || true
  rm -rf "$work"
}
trap finish EXIT

package=$(apt-cache depends linux-image-amd64 | sed -n 's/ *Depends: \(linux-image-.*\)/\1/p' | head -n 1)
(cd "$work" && apt-get download "$package" > "$work/download.log" 2>&1 && dpkg-deb -x ./*.deb kernel)

mkdir -p "$work"/system/{bin,modules,mnt,proc,dev,tmp}
cp "$(command -v busybox)" "$work/system/bin/"
cp "$here/guest.sh" "$work/system/init"
for module in e1000 netfs fscache 9pnet 9pnet_fd 9p; do
  find "$work/kernel/lib/modules" -name "$module.ko" -exec cp {} "$work/system/modules/" \;
done
(cd "$work/system" && find . | cpio --quiet -o -H newc | gzip > "$work/system.gz")

mkdir -m 700 "$NAMESPACE"
"$beamtalk" agents start --no-workspace
timeout 300 qemu-system-x86_64 -m 256 -nographic -no-reboot \
  -kernel "$work"/kernel/boot/vmlinuz-* -initrd "$work/system.gz" -append "console=ttyS0 quiet" \
  -netdev "user,id=net,restrict=on,guestfwd=tcp:10.0.2.100:564-cmd:socat - UNIX-CONNECT:$NAMESPACE/agent" \
  -device e1000,netdev=net,romfile= < /dev/null > "$work/console" 2>&1 || true

tr -d '\r' < "$work/console" | sed -n '/^ok \|^FAILED\|^finished/p' > "$work/result"
grep -v '^finished' "$work/result" || true
passed=$(grep -c '^ok ' "$work/result" || true)
failed=$(grep -c '^FAILED' "$work/result" || true)
echo "$passed passed, $failed failed"
if ! grep -q '^finished' "$work/result"; then
  echo "the emulated machine did not finish; its last lines:" >&2
  tail -n 20 "$work/console" >&2
  exit 1
fi
test "$failed" = 0
